"""A queue: an ordered sequence of messages, and the consumers they are delivered to.

A queue implements order and calls features through the hooks of ``feature.py``; it refers to no feature by name. A
message is *ready*, *unsettled* with a consumer, or gone. Small steps of the hot path are written inline, because a
call would cost more than the step.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from gateway.kernel.backlog.memory_budget import NO_RESERVE, MemoryBudget
from gateway.kernel.backlog.paging import Paging
from gateway.kernel.backlog.priorities import ready_for
from gateway.kernel.clock import drained
from gateway.kernel.counters import Weight
from gateway.kernel.errors import AccessRefused, NotImplementedHere
from gateway.kernel.journal.changes import Enqueued
from gateway.kernel.messages.death_records import DeathReason
from gateway.kernel.messages.message import Arguments, Message
from gateway.kernel.messages.queued_message import QueuedMessage
from gateway.kernel.queueing.consumer import ConsumedQueue, Consumer
from gateway.kernel.queueing.delayed_messages import DelayedMessages
from gateway.kernel.queueing.delivery_outcome import DeliveryOutcome
from gateway.kernel.queueing.feature import QueueFeature
from gateway.kernel.queueing.feature_dispatch import NO_FEATURES, FeatureDispatch
from gateway.kernel.queueing.scheduler import ConsumerScheduler
from gateway.kernel.queueing.selective_dispatch import SelectiveDispatch
from gateway.kernel.queueing.single_active import consumers_for

if TYPE_CHECKING:
    from gateway.kernel.backlog.delay_index import DelayIndex
    from gateway.kernel.clock import Clock
    from gateway.kernel.journal.journal import Journal
    from gateway.kernel.messages.paged_segment import PagedSegment
    from gateway.kernel.settings.user_counters import ConsumerTally

#: The number of messages of a long queue that stay in memory (R134).
RESIDENT_MESSAGES: Final = 2048

#: Messages that are forgotten between two checks of the clock.
_STEP: Final = 64

#: The number of expired messages that one ``take`` drops before it gives up.
_MOST_DUE: Final = 500


class Queue(ConsumedQueue):
    """One queue of one virtual host. Owns its waiting messages and its consumers.

    ``settings`` combines its arguments and policies. ``delayed`` is set once messages were delayed, ``selecting`` while
    some consumer has a filter. ``has_expirations`` means that some message had a TTL of its own. ``unsettled`` counts
    messages with consumers, ``unsettled_durable`` the durable ones of them, and ``stored`` all that were written to the
    store. ``used_at_ms`` is the last declaration, get or cancelled consumer. ``reapply`` is called when the queue needs
    other features than it has.
    """

    __slots__ = (
        "_feature_dispatch",
        "_journal",
        "_paging",
        "_reapply",
        "_settlements",
        "consumer_tally",
        "consumers",
        "delayed",
        "had_consumer",
        "has_expirations",
        "ready",
        "selecting",
        "stored",
        "unsettled",
        "unsettled_bytes",
        "unsettled_durable",
        "used_at_ms",
        "user",
    )

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
        super().__init__(vhost_name, name, id, is_durable, is_auto_delete, owner, arguments)
        self.consumers: ConsumerScheduler = consumers_for(self.arguments)
        self.selecting: SelectiveDispatch | None = None
        self.had_consumer = False
        self.consumer_tally: ConsumerTally | None = None
        self.user = ""
        self.has_expirations = False
        self.delayed: DelayedMessages | None = None
        self.stored = 0
        self.unsettled = 0
        self.unsettled_bytes = 0
        self.unsettled_durable = Weight()
        self.used_at_ms = journal.now_ms
        self._journal = journal
        self._reapply = reapply
        self._settlements = 0
        self._feature_dispatch = NO_FEATURES
        self._paging = Paging(journal)
        self.ready = ready_for(self.arguments, self._paging, resident_messages, reserve)
        self.apply(features)

    def __len__(self) -> int:
        """Return the number of ready messages, without the unsettled ones."""
        return len(self.ready)

    @property
    def clock(self) -> "Clock":
        """The clock for long work on the queue."""
        return self._journal.clock

    @property
    def consumer_count(self) -> int:
        """The number of consumers."""
        return len(self.consumers)

    def is_active(self, consumer: Consumer) -> bool:
        """Return whether the consumer gets messages while it has capacity."""
        return self.consumers.is_active(consumer)

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
        return bool(self.ready.length and len(self.consumers)) and not any(
            consumer.has_capacity for consumer in self.consumers if self.consumers.is_active(consumer)
        )

    def apply(self, features: tuple[QueueFeature, ...]) -> None:
        """Replace the features, as on a change of policy; a feature of the same type keeps its state."""
        earlier, self._feature_dispatch = self._feature_dispatch, FeatureDispatch(features) if features else NO_FEATURES
        self._feature_dispatch.succeed(earlier)

    def close(self) -> None:
        """Mark the queue as deleted and end its features; delayed messages are lost, ready ones purged separately."""
        self.is_deleted = True
        self.apply(())
        if self.delayed is not None:
            self.delayed.close()
            self.delayed = None

    # Messages in

    def offer(self, message: Message, *, was_delayed: bool = False) -> DeathReason | None:
        """Enqueue the message, or return why it was refused. A message that ``was_delayed`` is not delayed again."""
        feature_dispatch = self._feature_dispatch
        if feature_dispatch.diverting and not was_delayed and feature_dispatch.diverts(message):
            return None
        if feature_dispatch.admitting and (refusal := feature_dispatch.admit(message)) is not None:
            feature_dispatch.refused(message, refusal)
            return refusal
        self.counters.publish += 1
        consumer = None if self.ready.length else self.consumers.next()
        if consumer is None and self.selecting is not None:
            consumer = self.selecting.consumer_for(message)
        if consumer is not None and not consumer.needs_settling:
            self.counters.deliver_no_ack += 1
            if feature_dispatch.accepting:
                feature_dispatch.accepted(message, None)
            consumer.subscriber.deliver(consumer, message, False, None)
            return None
        entry = self.enter(message)
        if feature_dispatch.accepting:
            feature_dispatch.accepted(message, entry.position)
        if consumer is not None:
            self.unsettled += 1
            self.unsettled_bytes += len(message.body)
            if entry.is_durable:
                self.unsettled_durable.put(len(message.body))
            self.counters.deliver += 1
            consumer.charge()
            consumer.subscriber.deliver(consumer, message, False, entry)
            return None
        self.ready.append(entry)
        if message.header.expiration_ms is not None and not self.has_expirations:
            self._expect_expirations()
            feature_dispatch = self._feature_dispatch
        if feature_dispatch.enqueuing:
            feature_dispatch.enqueued(entry)
        return None

    def _expect_expirations(self) -> None:
        """Request the feature for per-message TTL: no policy needs it, so the queue may not have it yet (R51)."""
        self.has_expirations = True
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
            self._journal.clock.call_later(0, self._refit_restored)
        self._feature_dispatch.restored(change)

    def _refit_restored(self) -> None:
        if not self.is_deleted:
            self._reapply(self)

    # Delayed messages

    @property
    def delays(self) -> "DelayIndex | None":
        """The delayed messages, ``None`` if there never were any."""
        return None if self.delayed is None else self.delayed.delays

    @property
    def pending_dead_letter_count(self) -> int:
        """The number of pending dead letters: no target queue could take them."""
        return 0 if self.delayed is None else len(self.delayed.dead_letters)

    def ensure_delayed(self, release: "Callable[[QueuedMessage], DeathReason | None] | None" = None) -> DelayedMessages:
        """Return the delayed messages, created on first use; ``release`` is that of ``DelayedMessages``."""
        if self.delayed is None:
            self.delayed = DelayedMessages(self, self._journal, release)
        return self.delayed

    def offer_delayed(self, message: Message) -> DeathReason | None:
        """Enqueue a message that is due, or return why it has to wait on.

        Its publisher can no longer be informed of a refusal. If the queue is full the message is dead-lettered; without
        dead-lettering it waits, so that it is not lost.
        """
        refusal = self._feature_dispatch.admit(message)
        if refusal is None:
            return self.offer(message, was_delayed=True)
        if not self._feature_dispatch.dropping:
            return refusal
        self.drop(message, refusal)
        return None

    # Messages out

    def get(self) -> QueuedMessage | None:
        """Take a message for a client that does not consume (R90).

        ``None`` may also mean that many messages at the head have expired: then the queue is not empty, and the caller
        runs the steps of ``drop_expired_steps`` and calls again.
        """
        self.use()
        return self.take()

    def drop_expired_steps(self) -> Iterator[None]:
        """Return the steps that discard the expired messages at the head."""
        while self.ready.length:
            head = self.ready.peek()
            if head is None or (reason := self._feature_dispatch.due(head)) is None:
                return
            self.discard_head(reason)
            yield

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
                self.discard(entry, reason)
                most_due -= 1
                if not most_due:  # ``message_ttl`` continues in slices; consumers are served after it
                    self._journal.clock.call_later(0, self.dispatch)
                    return None
                feature_dispatch = self._feature_dispatch  # a message dead-lettered to this queue may have changed it
                continue
            self._hold(entry)
            if feature_dispatch.taking:
                feature_dispatch.taken()
            return entry
        return None

    def pick(self, seen: QueuedMessage) -> QueuedMessage | None:
        """Remove and return a message from any place in the queue, if it still waits; the caller settles it later."""
        entry = self.ready.take_out(seen)
        if entry is not None:
            self._hold(entry)
            self._feature_dispatch.taken()
        return entry

    def drop_if_expired(self, seen: QueuedMessage) -> bool:
        """Discard a waiting message if it has expired; return whether it has."""
        reason = self._feature_dispatch.due(seen)
        if reason is not None and (entry := self.ready.take_out(seen)) is not None:
            self.discard(entry, reason)
        return reason is not None

    def dispatch(self) -> None:
        """Deliver waiting messages while some consumer has capacity."""
        while self.ready.length and not self._settlements:
            consumer = self.consumers.next()
            if consumer is None:
                if self.selecting is not None:
                    self.selecting.search()
                return
            entry = self.take()
            if entry is None:
                return
            self.deliver_to(consumer, entry)

    def pause_dispatch(self) -> None:
        """Deliver nothing while messages are requeued in steps."""
        self._settlements += 1

    def resume_dispatch(self) -> None:
        """Resume delivery: all messages are requeued."""
        self._settlements -= 1
        self.dispatch()

    def deliver_to(self, consumer: Consumer, entry: QueuedMessage) -> None:
        """Deliver a message that was taken; it is consumed at once if no settling is needed."""
        redelivered = entry.is_redelivered
        if redelivered:
            self.counters.redeliver += 1
        message = self._feature_dispatch.shown(entry) if entry.deliveries else entry.message
        if consumer.needs_settling:
            self.counters.deliver += 1
            consumer.charge()
            consumer.subscriber.deliver(consumer, message, redelivered, entry)
            return
        self.counters.deliver_no_ack += 1
        self.consumed(entry)
        consumer.subscriber.deliver(consumer, message, redelivered, None)

    def shown(self, entry: QueuedMessage) -> Message:
        """Return the message as the consumer gets it; the stored message does not change."""
        return self._feature_dispatch.shown(entry)

    # Messages settled

    def accept(self, entry: QueuedMessage) -> None:
        """Settle a delivery: the message is consumed."""
        if self._feature_dispatch.settling:
            self._feature_dispatch.settled(entry, DeliveryOutcome.ACCEPTED)
        self.unsettled -= 1
        self.unsettled_bytes -= len(entry.message.body)
        if entry.is_durable:
            self.unsettled_durable.take(len(entry.message.body))
        self.counters.ack += 1
        if entry.is_durable:
            self._journal.dequeued(entry.position, entry.message)

    def consumed(self, entry: QueuedMessage) -> None:
        """Consume a message that was taken and needs no settling."""
        self._let_go(entry)
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
        self._let_go(entry)
        if outcome is DeliveryOutcome.REQUEUED:
            entry.deliveries += 1
            entry.is_redelivered = True
            self.requeue(entry)
        elif not self._feature_dispatch.retries(entry):
            self.discard(entry, DeathReason.REJECTED)

    def _hold(self, entry: QueuedMessage) -> None:
        self.unsettled += 1
        self.unsettled_bytes += len(entry.message.body)
        if entry.is_durable:
            self.unsettled_durable.put(len(entry.message.body))

    def _let_go(self, entry: QueuedMessage) -> None:
        self.unsettled -= 1
        self.unsettled_bytes -= len(entry.message.body)
        if entry.is_durable:
            self.unsettled_durable.take(len(entry.message.body))

    def requeue(self, entry: QueuedMessage) -> None:
        """Requeue a message in the place it was taken from; the next ``dispatch`` delivers it."""
        if (reason := self._feature_dispatch.returning(entry)) is not None:
            self.discard(entry, reason)
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
            self._hold(entry)
        return entries

    def discard_head(self, reason: DeathReason) -> None:
        """Discard the oldest waiting message."""
        self.discard(self.ready.popleft(), reason)

    def discard_these(self, positions: set[int], reason: DeathReason) -> None:
        """Discard the messages at these positions that are ready, in any place of the queue."""
        for entry in self.ready.remove(positions):
            self.discard(entry, reason)

    def discard(self, entry: QueuedMessage, reason: DeathReason) -> None:
        """Forget a message that was already removed from the queue, and report it to the features."""
        if reason is DeathReason.MAXLEN:
            self.counters.dropped += 1
        self.forget(entry)
        self._feature_dispatch.dropped(entry.message, reason)

    def drop(self, message: Message, reason: DeathReason) -> None:
        """Report to the features that a message was dropped or refused."""
        self._feature_dispatch.dropped(message, reason)

    def forget(self, entry: QueuedMessage) -> None:
        """Remove a message from the store that was already removed from the queue."""
        if entry.is_durable:
            self._journal.dequeued(entry.position, entry.message)

    def purge(self) -> int:
        """Remove every ready message; return how many there were. None is dead-lettered (R39).

        The queue is empty at once. The store removes a large number of messages in later turns.
        """
        count = len(self.ready)
        self._journal.clock.background.add(self.purge_steps())
        return count

    def purge_steps(self) -> Iterator[None]:
        """Remove every ready message; return the steps in which the store removes them."""
        return self._forgetting(*self.ready.clear())

    def _forgetting(self, entries: list[QueuedMessage], segments: "list[PagedSegment]") -> Iterator[None]:
        for number, entry in enumerate(drained(entries)):
            self.forget(entry)
            if number % _STEP == _STEP - 1:
                yield
        for segment in drained(segments):
            self._journal.dequeued_segment(segment)
            yield

    # Consumers

    def consume(self, consumer: Consumer) -> None:
        """Add a consumer created for this queue; deliveries start with the next ``dispatch``.

        :raises AccessRefused: if it is exclusive and others consume, or one that consumes is exclusive (R95, R97).
        :raises NotImplementedHere: if it shares a limit and this queue does not support global QoS (R141).
        """
        if consumer.shared_credit is not None and not self.shares_credit:
            raise NotImplementedHere(f"{self.entity} does not support global qos")
        is_shared = len(self.consumers) or not self.consumers.permits_exclusive
        if any(each.is_exclusive for each in self.consumers) or (consumer.is_exclusive and is_shared):
            raise AccessRefused(f"{self.entity} in exclusive use")
        if consumer.selection is not None and self.selecting is None:
            self.consumers = self.selecting = SelectiveDispatch(self, self.consumers, self._journal)
        self.consumers.add(consumer)
        self._consumed_from(consumer)

    def _consumed_from(self, consumer: Consumer) -> None:
        """Count an added consumer."""
        if self.consumer_tally is not None:
            self.consumer_tally.added(consumer.subscriber.origin.user)
        self.had_consumer = True
        self.used_at_ms = self._journal.now_ms

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

    def _consumed_less(self, consumer: Consumer) -> None:
        """Count a removed consumer."""
        if self.consumer_tally is not None:
            self.consumer_tally.removed(consumer.subscriber.origin.user)

    def redeclared(self) -> None:
        """Restart the queue's lease on a repeated declaration, except for a quorum queue (R38)."""
        if self.arguments.get("x-queue-type") != "quorum":
            self.use()

    def use(self) -> None:
        """Restart the queue's lease after a declaration, a get or a cancelled consumer (R37, R38)."""
        self.used_at_ms = self._journal.now_ms
        self._feature_dispatch.used()

    def reconsider(self, consumer: Consumer) -> None:
        """Resume a waiting consumer if it has capacity, and serve it."""
        if consumer.is_waiting and consumer in self.consumers and consumer.has_capacity:
            self.consumers.resume(consumer)
            if len(self.ready):
                self.dispatch()

    @property
    def is_unused(self) -> bool:
        """Whether an auto-delete queue can be deleted: it had a consumer and the last one is gone (R32)."""
        return self.had_consumer and not len(self.consumers)
