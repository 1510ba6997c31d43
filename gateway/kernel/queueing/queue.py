"""A queue: an ordered sequence of messages, and the consumers they are delivered to.

A queue implements order and calls features through the hooks of ``feature.py``; it refers to no feature by name. A
message is *ready*, *unsettled* with a consumer, or gone. Small steps of the hot path are written inline, because a
call would cost more than the step.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from gateway.kernel.backlog.memory_budget import NO_RESERVE, MemoryBudget
from gateway.kernel.backlog.paging import Paging
from gateway.kernel.backlog.priorities import ready_for
from gateway.kernel.budget import WORK_PER_CLOCK_READING
from gateway.kernel.errors import AccessRefused, NotImplementedHere
from gateway.kernel.journal.changes import Enqueued
from gateway.kernel.journal.enqueued_run import EnqueuedRun
from gateway.kernel.messages.death_records import DeathReason
from gateway.kernel.messages.message import Arguments, Message
from gateway.kernel.messages.paged_segment import REDELIVERED
from gateway.kernel.messages.queued_message import QueuedMessage
from gateway.kernel.queueing.consumer import Consumer
from gateway.kernel.queueing.delayed_messages import DelayedMessages
from gateway.kernel.queueing.delivery_outcome import DeliveryOutcome
from gateway.kernel.queueing.drops import Drops
from gateway.kernel.queueing.feature import QueueFeature
from gateway.kernel.queueing.feature_dispatch import dispatch_of
from gateway.kernel.queueing.queue_like import QueueLike
from gateway.kernel.queueing.selective_dispatch import SelectiveDispatch
from gateway.kernel.queueing.single_active import consumers_for
from gateway.kernel.queueing.unsettled import Unsettled

if TYPE_CHECKING:
    from gateway.kernel.journal.journal import Journal

#: The number of messages of a long queue that stay in memory (R134).
RESIDENT_MESSAGES: Final = 2048

#: The number of expired messages that one ``take`` drops before it gives up.
_MOST_DUE: Final = 500

#: The work of a delivery from the backlog, in units of the time budget: 4 microseconds compiled, 15 as source.
_DELIVERY_WORK: Final = 4


class Queue(QueueLike):
    """One queue of one virtual host. Owns its waiting messages.

    ``delayed`` is set once messages were delayed, ``selecting`` while some consumer has a filter. ``has_expirations``
    means that some message had a TTL of its own. ``stored`` counts the messages that were written to the store.
    ``reapply`` is called when the queue needs other features than it has.
    """

    __slots__ = ("_paging", "_reapply", "delayed", "drops", "has_expirations", "held", "ready", "selecting", "stored")

    def __init__(
        self,
        vhost_name: str,
        name: str,
        journal: "Journal",
        *,
        id: int = 0,
        is_durable: bool = False,
        is_auto_delete: bool = False,
        owner: object | None = None,
        arguments: Arguments | None = None,
        features: tuple[QueueFeature, ...] = (),
        resident_messages: int = RESIDENT_MESSAGES,
        reserve: MemoryBudget = NO_RESERVE,
        reapply: "Callable[[Queue], None]" = lambda queue: None,
    ) -> None:
        consumers = consumers_for(arguments or {})
        super().__init__(vhost_name, name, journal, consumers, id, is_durable, is_auto_delete, owner, arguments)
        self.selecting: SelectiveDispatch | None = None
        self.has_expirations = False
        self.delayed: DelayedMessages | None = None
        self.stored = 0
        self.held = Unsettled()
        self._reapply = reapply
        self._paging = Paging(journal)
        self.ready = ready_for(self.arguments, self._paging, resident_messages, reserve)
        self.drops = Drops(self.counters, journal, self.ready)
        self.apply(features)

    def __len__(self) -> int:
        """Return the number of ready messages, without the unsettled ones."""
        return len(self.ready)

    @property
    def unsettled(self) -> int:
        """The number of messages that were taken and not settled yet."""
        return self.held.count

    @property
    def delayed_count(self) -> int:
        """The number of delayed messages."""
        return 0 if self.delayed is None else len(self.delayed.delays)

    @property
    def pending_dead_letter_count(self) -> int:
        """The number of pending dead letters: no target queue could take them."""
        return 0 if self.delayed is None else len(self.delayed.dead_letters)

    @property
    def disk_writes(self) -> int:
        """The number of messages written to the store, to survive a restart or to free memory."""
        return self.stored + self._paging.spills

    @property
    def disk_reads(self) -> int:
        """The number of waiting messages read back from the store."""
        return self._paging.reads

    @property
    def lacks_capacity(self) -> bool:
        """Whether messages wait although there are consumers, because none of them has capacity."""
        return self.ready.length > 0 and self.consumers.lack_capacity

    def apply(self, features: tuple[QueueFeature, ...]) -> None:
        """Replace the features, as on a change of policy; a feature of the same type keeps its state."""
        earlier = self._feature_dispatch
        self._feature_dispatch = self.drops.features = dispatch_of(features)
        self._feature_dispatch.succeed(earlier)

    def close(self) -> None:
        """Mark the queue as deleted and end its features; delayed messages are lost, ready ones purged separately."""
        super().close()
        if self.delayed is not None:
            self.delayed.close()
            self.delayed = None

    # Messages in

    def offer(self, message: Message, *, was_delayed: bool = False) -> DeathReason | None:
        """Enqueue the message, or return why it was refused. A message that ``was_delayed`` is not delayed again."""
        feature_dispatch = self._feature_dispatch
        if feature_dispatch.diverting and not was_delayed and feature_dispatch.diverts(message):
            return None
        if feature_dispatch.guarding and (kept_out := feature_dispatch.keeps_out(message)) is not None:
            if isinstance(kept_out, DeathReason):
                self.drops.drop_arriving(message, kept_out)
                return None
            feature_dispatch.refused(message, kept_out.reason)
            return kept_out.reason
        self.counters.publish += 1
        consumer = None if self.ready.length or self._pauses else self.consumers.next()
        if consumer is None and self.selecting is not None and not self._pauses:
            consumer = self.selecting.consumer_for(message)
        if consumer is not None and not consumer.needs_settling:
            self.counters.deliver_no_ack += 1
            if feature_dispatch.accepting:
                for feature in feature_dispatch.accepting:
                    feature.accepted(message, None)
            consumer.recipient.deliver(consumer, message, False, None)
            return None
        entry = self.enter(message)
        if feature_dispatch.accepting:
            feature_dispatch.accepted(message, entry.position)
        if consumer is not None:
            if entry.is_durable:
                self.held.add(entry)
            else:
                self.held.count += 1
                self.held.bytes += len(message.body)
            self.counters.deliver += 1
            consumer.charge()
            consumer.recipient.deliver(consumer, message, False, entry)
            return None
        self.ready.append(entry)
        if message.header.expiration_ms is not None and not self.has_expirations:
            self._expect_expirations()
            feature_dispatch = self._feature_dispatch
        if feature_dispatch.enqueuing:
            feature_dispatch.enqueued(entry)
        return None

    def offer_run(self, messages: list[Message]) -> bool:
        """Enqueue messages behind those that wait, so that none is for a consumer, unless a feature has to see each.

        A fault leaves either none of them enqueued, or all.
        """
        header = messages[0].header
        if self._feature_dispatch.sees_arrivals or not self.ready.length or self.selecting is not None:
            return False
        if header.expiration_ms is not None:
            return False
        journal = self._journal
        position, now_ms = journal.position, journal.now_ms
        is_durable = bool(self.id) and (header.is_persistent or self.stores_all)
        entries = []
        size = 0
        for message in messages:
            position += 1
            size += len(message.body)
            entries.append(QueuedMessage(message, position, now_ms, is_durable))
        if is_durable:
            journal.enqueued_run(self.id, entries)
            self.stored += len(entries)
        journal.position = position
        self.counters.publish += len(entries)
        self.ready.extend(entries, size)
        return True

    def _expect_expirations(self) -> None:
        """Request the feature for per-message TTL: no policy needs it, so the queue may not have it yet (R51)."""
        self.has_expirations = True
        if not self.is_deleted:
            self._reapply(self)

    def enter(self, message: Message, due_at_ms: int = 0) -> QueuedMessage:
        """Assign a position to a message, and store it if it is durable; the caller adds it to the queue."""
        journal = self._journal
        journal.position = position = journal.position + 1
        now_ms = journal.turn_ms or journal.now_ms
        if self.id and (message.header.is_persistent or self.stores_all):
            entry = QueuedMessage(message, position, now_ms, True)
            journal.enqueued(self.id, entry, due_at_ms)
            self.stored += 1
            return entry
        return QueuedMessage(message, position, now_ms, False)

    def restore(self, change: Enqueued, is_redelivered: bool) -> None:
        """Take in a message found by recovery. No message is dropped before all are restored."""
        if change.due_at_ms:
            self.ensure_delayed().restore(change, is_redelivered)
            return
        self.ready.restore(change, is_redelivered)
        if change.expires_at_ms and not self.has_expirations:
            self.has_expirations = True
            self._journal.clock.call_later(0, self._expect_expirations)
        self._feature_dispatch.restored(change)

    def restore_run(self, run: EnqueuedRun, flags: bytes) -> None:
        """Take in messages found by recovery, as ``restore`` does; ``flags`` has those of ``PagedSegment`` for each."""
        if self._feature_dispatch.restoring:
            for change, flag in zip(run.each(), flags, strict=True):
                self.restore(change, bool(flag & REDELIVERED))
        else:
            self.ready.restore_run(run, flags)

    # Delayed messages

    def ensure_delayed(self, release: "Callable[[QueuedMessage], DeathReason | None] | None" = None) -> DelayedMessages:
        """Return the delayed messages, created on first use; ``release`` is that of ``DelayedMessages``."""
        if self.delayed is None:
            self.delayed = DelayedMessages(self, self._journal, release)
            self._feature_dispatch.holding()
        return self.delayed

    def offer_due(self, message: Message) -> None:
        """Enqueue a message that an exchange delayed; if the queue has no room, the message waits on here."""
        self.ensure_delayed().offer(message)

    def refusal_of(self, message: Message) -> DeathReason | None:
        """Return why the queue has no room for a message, or ``None``."""
        return self._feature_dispatch.admit(message)

    # Messages out

    def get(self) -> QueuedMessage | None:
        """Take a message for a client that does not consume (R90).

        ``None`` may also mean that many messages at the head have expired: then the queue is not empty, and the caller
        runs ``drop_expired_steps`` and calls again.
        """
        self.use()
        return self.take()

    def take(self) -> QueuedMessage | None:
        """Remove and return the oldest message that has not expired; the caller settles it later."""
        ready, feature_dispatch = self.ready, self._feature_dispatch
        most_due = _MOST_DUE
        while ready.length:
            try:
                entry = ready.popleft()
            except IndexError:  # the remaining messages had lost their contents
                return None
            if feature_dispatch.due_asking and (reason := feature_dispatch.due(entry)) is not None:
                self.drops.discard(entry, reason)
                most_due -= 1
                if not most_due:  # ``message_ttl`` continues in slices; consumers are served after it
                    self._journal.clock.call_later(0, self.dispatch)
                    return None
                feature_dispatch = self._feature_dispatch  # a message dead-lettered to this queue may have changed it
                continue
            self.held.add(entry)
            if feature_dispatch.taking:
                feature_dispatch.taken()
            return entry
        return None

    def pick(self, seen: QueuedMessage) -> QueuedMessage | None:
        """Remove and return a message from any place in the queue, if it still waits; the caller settles it later."""
        entry = self.ready.take_out(seen)
        if entry is not None:
            self.held.add(entry)
            self._feature_dispatch.taken()
        return entry

    def dispatch(self) -> None:
        """Deliver waiting messages while some consumer has capacity; what the turn has no time for follows later."""
        budget = self._journal.budget
        while self.ready.length and not self._pauses:
            consumer = self.consumers.next()
            if consumer is None:
                if self.selecting is not None:
                    self.selecting.search()
                return
            entry = self.take()
            if entry is None:
                return
            self.deliver_to(consumer, entry)
            budget.work += _DELIVERY_WORK
            if budget.work >= WORK_PER_CLOCK_READING and budget.is_spent():
                budget.work = WORK_PER_CLOCK_READING  # so that the caller reads the clock, too
                consumer.outlet.pause()
                for each in self.consumers.with_capacity():
                    each.outlet.pause()

    def deliver_to(self, consumer: Consumer, entry: QueuedMessage) -> None:
        """Deliver a message that was taken; it is consumed at once if no settling is needed."""
        redelivered = entry.is_redelivered
        if redelivered:
            self.counters.redeliver += 1
        message = self._feature_dispatch.shown(entry) if entry.deliveries else entry.message
        if consumer.needs_settling:
            self.counters.deliver += 1
            consumer.charge()
            consumer.recipient.deliver(consumer, message, redelivered, entry)
            return
        self.counters.deliver_no_ack += 1
        self.consumed(entry)
        consumer.recipient.deliver(consumer, message, redelivered, None)

    def shown(self, entry: QueuedMessage) -> Message:
        """Return the message as the consumer gets it; the stored message does not change."""
        return self._feature_dispatch.shown(entry)

    # Messages settled

    def accept(self, entry: QueuedMessage) -> None:
        """Settle a delivery: the message is consumed."""
        if self._feature_dispatch.settling:
            self._feature_dispatch.settled(entry, DeliveryOutcome.ACCEPTED)
        self.counters.ack += 1
        if entry.is_durable:
            self.held.remove(entry)
            self._journal.dequeued(entry.position, entry.message)
        else:
            self.held.count -= 1
            self.held.bytes -= len(entry.message.body)

    def consumed(self, entry: QueuedMessage) -> None:
        """Consume a message that was taken and needs no settling."""
        self.held.remove(entry)
        self.forget(entry)

    def settle(self, entry: QueuedMessage, outcome: DeliveryOutcome) -> None:
        """Settle a delivery: the message is consumed, requeued or rejected.

        A requeued message waits for the next ``dispatch``, so that many can be requeued in order first. With a deleted
        queue the message is gone.
        """
        if outcome is DeliveryOutcome.ACCEPTED or self.is_deleted:
            self.accept(entry)
            return
        if self._feature_dispatch.settling:
            self._feature_dispatch.settled(entry, outcome)
        self.held.remove(entry)
        if outcome is DeliveryOutcome.REQUEUED:
            entry.deliveries += 1
            entry.is_redelivered = True
            self.requeue(entry)
        elif not self._feature_dispatch.retries(entry):
            self.drops.discard(entry, DeathReason.REJECTED)

    def requeue(self, entry: QueuedMessage) -> None:
        """Requeue a message in the place it was taken from; the next ``dispatch`` delivers it."""
        if (reason := self._feature_dispatch.returning(entry)) is not None:
            self.drops.discard(entry, reason)
            return
        if entry.is_durable:
            self._journal.requeued(self.id, entry)
        self.ready.put_back(entry)
        if entry.message.header.expiration_ms is not None and not self.has_expirations:
            self._expect_expirations()
        self._feature_dispatch.enqueued(entry)

    # Messages removed

    def take_these(self, positions: set[int]) -> list[QueuedMessage]:
        """Take the messages at these positions that are ready, for a caller that settles them later."""
        entries = self.ready.remove(positions)
        for entry in entries:
            self.held.add(entry)
        return entries

    def forget(self, entry: QueuedMessage) -> None:
        """Remove a message from the store that was already removed from the queue."""
        if entry.is_durable:
            self._journal.dequeued(entry.position, entry.message)

    def erase(self) -> int:
        """Delete the messages of a deleted queue; return how many were ready."""
        return self.drops.purge()

    # Consumers

    def consume(self, consumer: Consumer) -> None:
        """Add a consumer created for this queue; deliveries start with the next ``dispatch``.

        :raises AccessRefused: if it is exclusive and others consume, or one that consumes is exclusive (R95, R97).
        :raises NotImplementedHere: if it shares a limit and this queue does not support global QoS (R141).
        """
        if consumer.shared_credit is not None and not self.shares_credit:
            raise NotImplementedHere(f"{self.entity} does not support global qos")
        if not self.consumers.permit(consumer):
            raise AccessRefused(f"{self.entity} in exclusive use")
        if consumer.selection is not None and self.selecting is None:
            self.consumers = self.selecting = SelectiveDispatch(self, self.consumers, self._journal)
        self.consumers.add(consumer)
        self._consumed_from(consumer)

    def cancel(self, consumer: Consumer) -> None:
        """Remove a consumer; its unsettled deliveries stay with it.

        Single active consumer: the next ``dispatch`` serves its successor, after messages were requeued (R96).
        """
        if consumer in self.consumers:
            self.consumers.remove(consumer)
            self._consumed_less(consumer)
            if self.selecting is not None and not self.selecting.is_needed:
                self.consumers, self.selecting = self.selecting.end(), None
            self.use()

    def reconsider(self, consumer: Consumer) -> None:
        """Resume a waiting consumer if it has capacity, and serve it."""
        if consumer.is_waiting and consumer in self.consumers and consumer.has_capacity:
            self.consumers.resume(consumer)
            if len(self.ready):
                self.dispatch()
