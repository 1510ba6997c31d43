"""Plausible mistakes in the broker, each as a change of one piece of its source, that the simulation must notice."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Mutation:
    """A mistake: the module, the piece of source that occurs once in it, and what replaces it."""

    name: str
    module: str
    old: str
    new: str


MUTATIONS: Final = (
    Mutation(
        "a confirm comes before the message is durable",
        "gateway.kernel.journal.confirms",
        "if self._is_stored or self._waiting or self._journal.indirect_lsn == lsn:",
        "if False:",
    ),
    Mutation(
        "a refused message is confirmed",
        "gateway.kernel.journal.confirms",
        "            self._refused.append(self._published)\n        if not self._is_due",
        "            pass\n        if not self._is_due",
    ),
    Mutation(
        "of several confirms that are due the last is not sent",
        "gateway.kernel.journal.confirms",
        "            _, number = self._waiting[released - 1]\n",
        "            _, number = self._waiting[max(0, released - 2)]\n",
    ),
    Mutation(
        "a requeued message goes to the end of its queue",
        "gateway.kernel.queueing.queue",
        "        self.ready.put_back(entry)\n",
        "        self.ready.append(entry)\n",
    ),
    Mutation(
        "a requeued message is not marked as delivered before",
        "gateway.kernel.queueing.queue",
        "            entry.is_redelivered = True\n",
        "            pass\n",
    ),
    Mutation(
        "an acknowledged message stays in the store",
        "gateway.kernel.queueing.queue",
        "            self.held.remove(entry)\n            self._journal.dequeued(entry.position, entry.message)\n"
        "        else:",
        "            self.held.remove(entry)\n        else:",
    ),
    Mutation(
        "the content of a message is discarded with its first queue",
        "gateway.kernel.journal.journal",
        "        if sharers > 2:\n            self._sharers[message_id] = sharers - 1\n        else:\n"
        "            del self._sharers[message_id]\n        return False\n",
        "        changes.append(Discarded(message_id))\n        return True\n",
    ),
    Mutation(
        "the content of a message in two queues is never discarded",
        "gateway.kernel.journal.journal",
        "        else:\n            del self._sharers[message_id]\n        return False\n",
        "        return False\n",
    ),
    Mutation(
        "the last change of a large turn is lost",
        "gateway.kernel.journal.journal",
        "        lsn = self._store.append(changes)\n",
        "        lsn = self._store.append(changes[:7])\n",
    ),
    Mutation(
        "what waits for the disk is answered at the next sync, whatever that covers",
        "gateway.kernel.journal.journal",
        "        while waiting and waiting[0][0] <= watermark:\n",
        "        while waiting:\n",
    ),
    Mutation(
        "the prefetch limit allows one more",
        "gateway.kernel.queueing.consumer",
        "        return 0 < self.limit <= self.used\n",
        "        return 0 < self.limit < self.used\n",
    ),
    Mutation(
        "a slow consumer that has room again is not served",
        "gateway.kernel.queueing.queue",
        "            self.consumers.resume(consumer)\n"
        "            if len(self.ready):\n                self.dispatch()\n",
        "            self.consumers.resume(consumer)\n",
    ),
    Mutation(
        "messages live ten times as long",
        "gateway.kernel.features.message_ttl",
        "        return entry.enqueued_at_ms + lives_ms\n",
        "        return entry.enqueued_at_ms + 10 * lives_ms\n",
    ),
    Mutation(
        "the timer of a message's expiry is in other units",
        "gateway.kernel.features.message_ttl",
        "delay_s = max(0.0, (at_ms - self._clock.wall_ms()) / 1000)",
        "delay_s = max(0.0, (at_ms - self._clock.wall_ms()))",
    ),
    Mutation(
        "a message that expires is not dead-lettered",
        "gateway.kernel.features.message_ttl",
        "        self._queue.drops.discard(self._queue.ready.popleft(), DeathReason.EXPIRED)\n",
        "        self._queue.forget(self._queue.ready.popleft())\n",
    ),
    Mutation(
        "a length limit allows one more",
        "gateway.kernel.features.max_length",
        "        if ready.length <= self._max_length and ready.bytes <= self._max_bytes:\n            return False\n",
        "        if ready.length <= self._max_length + 1 and ready.bytes <= self._max_bytes:\n"
        "            return False\n",
    ),
    Mutation(
        "a queue that refuses is full one message too early",
        "gateway.kernel.features.max_length",
        "ready.length + self._queue.pending_dead_letter_count >= self._max_length",
        "ready.length + self._queue.pending_dead_letter_count + 1 >= self._max_length",
    ),
    Mutation(
        "the permission to write is asked in place of that to read",
        "gateway.access.permissions",
        "        return self._rules[operation].allows(name or DEFAULT_EXCHANGE)\n",
        "        return self._rules[Operation.WRITE].allows(name or DEFAULT_EXCHANGE)\n",
    ),
    Mutation(
        "the default exchange needs no permission",
        "gateway.access.permissions",
        "        return self._rules[operation].allows(name or DEFAULT_EXCHANGE)\n",
        "        return not name or self._rules[operation].allows(name)\n",
    ),
    Mutation(
        "exclusive queues stay when their connection ends",
        "gateway.kernel.vhosts.queues",
        "        if owner in self._exclusive:  # also if its queues were deleted one by one\n",
        "        if False:\n",
    ),
    Mutation(
        "a transaction loses its last publish",
        "gateway_amqp.publishing",
        "        held, self._held, self._settled = self._held, [], []\n        self._release_held()\n        vhost",
        "        held, self._held, self._settled = self._held[:4], [], []\n        self._release_held()\n        vhost",
    ),
    Mutation(
        "a rollback keeps what was published",
        "gateway_amqp.publishing",
        "        held, self._held = self._held, []\n        settled, self._settled",
        "        held = list(self._held)\n        settled, self._settled",
    ),
    Mutation(
        "recovery reads the messages of a queue in another order",
        "gateway.kernel.backlog.ready",
        "run.message_ids[first:last],",
        "run.message_ids[first:last][::-1],",
    ),
    Mutation(
        "of several requeued messages the last one comes first",
        "gateway.kernel.backlog.requeued",
        "        self.first = self._positions[0]\n        if self._bytes > self._most_bytes:",
        "        self.first = entry.position\n        if self._bytes > self._most_bytes:",
    ),
    Mutation(
        "deliveries up to a tag are settled without that of the tag",
        "gateway.kernel.queueing.ledger",
        "        for candidate in range(self._oldest, tag + 1):\n",
        "        for candidate in range(self._oldest, tag):\n",
    ),
    Mutation(
        "unsettled deliveries are lost with their channel",
        "gateway.kernel.queueing.ledger",
        "    values = iter(deliveries.values())\n    while part",
        "    values = iter(list(deliveries.values())[1:])\n    while part",
    ),
    Mutation(
        "output waits for no sync",
        "gateway.net.outbox",
        "            self._promises = [(lsn, len(self.pieces) if since is None else since)]\n",
        "            pass\n",
    ),
    Mutation(
        "delayed messages are released some time before they are due",
        "gateway.kernel.backlog.delay_index",
        "        end = (now_ms + 1) << ",
        "        end = (now_ms + 51) << ",
    ),
    Mutation(
        "delayed messages that a slice has no time for are lost",
        "gateway.kernel.backlog.delay_index",
        "            for due_at_ms, entry in waiting:\n                self.hold(entry, due_at_ms)\n",
        "",
    ),
    Mutation(
        "a key is forgotten when its window is half over",
        "gateway.kernel.features.deduplication_cache",
        "now_ms + ttl_ms)",
        "now_ms + ttl_ms // 2)",
    ),
    Mutation(
        "a held dead letter is forgotten after its first attempt",
        "gateway.kernel.queueing.pending_dead_letters",
        "        if takers is None or self._queue.is_deleted:\n",
        "        if True:\n",
    ),
    Mutation(
        "the successor of a single active consumer is the last one in place of the best",
        "gateway.kernel.queueing.single_active",
        "            self._active = self._ranking.first\n",
        "            self._active = next(reversed(self._members), None)\n",
    ),
    Mutation(
        "consumers are served in the order of their priorities, the lowest first",
        "gateway.kernel.queueing.scheduler",
        "    return ring.priority\n",
        "    return -ring.priority\n",
    ),
    Mutation(
        "a turn has no budget",
        "gateway.kernel.budget",
        "        return now_s >= self._ends_s\n",
        "        return False\n",
    ),
    Mutation(
        "the budget does not end a turn of STOMP frames",
        "gateway_stomp.connection",
        "and budget.is_spent() and self.state is not _AUTHENTICATING:",
        "and budget.is_spent() and False:",
    ),
    Mutation(
        "the budget does not end a turn of a long MQTT request",
        "gateway_mqtt.connection",
        "            if budget.is_spent():\n                self.is_held = True\n                return\n",
        "            budget.is_spent()\n",
    ),
    Mutation(
        "a turn of leftover input is not continued",
        "gateway.net.turn",
        "        if held:\n            self._go_on_soon()\n        if self._awake",
        "        if self._awake",
    ),
    Mutation(
        "a memory alarm does not end",
        "gateway.net.watermarks",
        'used > self.memory_limit, f"{used} of {self.memory_limit} bytes used")',
        'used > self.memory_limit or bool(self._alarms), f"{used} of {self.memory_limit} bytes used")',
    ),
    Mutation(
        "a tracer that calls sys.exit ends the turn",
        "gateway.kernel.archives.tracing",
        "        except BaseException as raised:  # a plugin's exception must not reach the publisher\n",
        "        except Exception as raised:\n",
    ),
    Mutation(
        "a fault of an event listener is not counted",
        "gateway.kernel.vhosts.event_listeners",
        "            self._faults.contain_in_part(FAULT, error, vhost, listener)\n",
        "            pass\n",
    ),
    Mutation(
        "a message that an interceptor could not inspect goes on",
        "gateway.kernel.interception.publish_chain",
        'return message if interceptor.on_error == "pass" else Refusal(',
        "return message if interceptor.on_error else Refusal(",
    ),
    Mutation(
        "what an exchange type could not route does not reach the alternate exchange",
        "gateway.kernel.routing.router",
        "            destinations, walk.selected = walk.selected, None\n"
        "            return destinations if destinations or walk.rest is not None else self._alternates(exchange)\n",
        "            destinations, walk.selected = walk.selected, None\n            return destinations\n",
    ),
    Mutation(
        "connections keep the permissions that a plugin has changed",
        "gateway.node.vhost_access",
        "        self.broker.permissions_changed(vhost)\n",
        "",
    ),
    Mutation(
        "a plugin that fails repeatedly stays on",
        "gateway.node.plugin_faults",
        "        if len(recent) == self._limit and now_s - recent[0] <= PERIOD_S:\n",
        "        if len(recent) > self._limit and now_s - recent[0] <= PERIOD_S:\n",
    ),
    Mutation(
        "a store that fails for good is not noticed",
        "gateway_lmdb.writer",
        "        self._has_failed = True\n        self._listener.on_failed(reason)\n",
        "        self._has_failed = True\n",
    ),
    Mutation(
        "a segment of a stream is not synced",
        "gateway_lmdb.segment_files",
        "                file.sync()\n            disk.rename(unfinished, path)\n",
        "            disk.rename(unfinished, path)\n",
    ),
    Mutation(
        "a changed policy leaves existing queues as they were",
        "gateway.kernel.features.policy_applier",
        "                    queue.settings = settings\n                    self._in_job(self.reapply, queue)\n",
        "                    queue.settings = settings\n",
    ),
    Mutation(
        "connections keep the permissions that an administrator has changed",
        "gateway.kernel.broker.broker",
        "            vhost.invalidate_caches()\n        if self.directory.user(user) is None:\n",
        "            pass\n        if self.directory.user(user) is None:\n",
    ),
    Mutation(
        "the connections of a deleted user stay",
        "gateway.kernel.broker.broker",
        "        if self.directory.user(user) is None:\n",
        "        if False:\n",
    ),
    Mutation(
        "a queue adds messages without their priorities",
        "gateway.kernel.backlog.priorities",
        "        self._row(message.header.priority).append(entry)\n",
        "        self._row(0).append(entry)\n",
    ),
    Mutation(
        "a rollback of AMQP keeps what was acknowledged",
        "gateway_amqp.publishing",
        "        for deliveries in settled:\n            self._restore_unsettled(deliveries)\n",
        "",
    ),
    Mutation(
        "an aborted transaction of STOMP keeps what was acknowledged",
        "gateway_stomp.transactions",
        "        self._settling.restore(transaction.deliveries)\n        self._forget(name)\n",
        "        self._forget(name)\n",
    ),
    Mutation(
        "Retain As Published is not heeded",
        "gateway_mqtt.traffic.delivery_writer",
        "        is_retained = view.is_retained and terms is not None and terms.retain_as_published\n",
        "        is_retained = view.is_retained and terms is not None\n",
    ),
    Mutation(
        "retained messages are sent whatever Retain Handling says",
        "gateway_mqtt.traffic.subscribing",
        "        wants = request.retain_handling == _RETAINED_ALWAYS\n",
        "        wants = True\n",
    ),
    Mutation(
        "a publish in pieces that repeats the one before lends its header to the next ones",
        "gateway_amqp.repetition",
        "        if target is self._target and header is self._header and size == self._size:\n"
        "            self.is_repeated = True\n"
        "        else:\n"
        "            self.is_repeated = False\n"
        "            self._target, self._header, self._size = target, header, size\n",
        "        if target is not self._target:\n"
        "            self._target = target\n"
        "        elif header is not self._header or size != self._size:\n"
        "            self._header, self._size = header, size\n"
        "        else:\n"
        "            self.is_repeated = True\n",
    ),
    Mutation(
        "every delivery stays in memory",
        "gateway.kernel.queueing.ledger",
        "        self._deliveries[tag] = Delivery(tag, queue, entry, consumer)\n",
        "        self._deliveries[tag] = Delivery(tag, queue, entry, consumer)\n"
        "        vars(Ledger.add).setdefault('kept', []).append(self._deliveries[tag])\n",
    ),
    Mutation(
        "connections that have ended stay in memory",
        "gateway.net.connection_io",
        "        self._owner = _CLOSED_OWNER\n",
        "        self._owner = _CLOSED_OWNER\n"
        "        vars(ConnectionIO.detach).setdefault('kept', []).append(self.machine)\n",
    ),
    Mutation(
        "a drop that has to wait is forgotten",
        "gateway.kernel.routing.postponed_drops",
        "        self._drops.append(drop)\n",
        "        pass\n",
    ),
    Mutation(
        "what is committed during a compaction is not in the new file",
        "gateway_lmdb.compaction",
        "            self._pending.append(batch)\n",
        "            pass\n",
    ),
    Mutation(
        "a virtual host has one connection more than its limit",
        "gateway.kernel.broker.connection_limits",
        "connections.count_in(vhost_name) >= limit:",
        "connections.count_in(vhost_name) > limit:",
    ),
    Mutation(
        "the connections of a deleted virtual host stay",
        "gateway.kernel.broker.vhost_deletions",
        "        yield from self._connections.force_closes("
        "f\"vhost '{name}' is deleted\", lambda peer: peer.vhost_name == name)\n",
        "",
    ),
    Mutation(
        "a reader of a stream begins one message after its offset",
        "gateway.kernel.streams.stream",
        "            return min(max(start, log.first), log.end)\n",
        "            return min(max(start + 1, log.first), log.end)\n",
    ),
    Mutation(
        "a queue expires although it has a consumer",
        "gateway.kernel.features.lease",
        "        if len(self._queue.consumers):\n            self._used_at_s = now_s\n",
        "",
    ),
)


def mutation_named(name: str) -> Mutation:
    """Return the mutation of this name."""
    return next(mutation for mutation in MUTATIONS if mutation.name == name)
