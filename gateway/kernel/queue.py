"""Messages waiting in order, and the consumers they go to.

A queue knows order and the moments of a message's stay (``features/base.py``), and no feature by name. A message is in
one of three places: among the ``ready``, *unsettled* with a consumer, or gone.
"""

from collections.abc import Callable
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

from gateway.kernel.changes import Enqueued
from gateway.kernel.consumers import Consumer, Credit, Outlet, Subscriber
from gateway.kernel.counters import Counters
from gateway.kernel.delays import Delays
from gateway.kernel.errors import AccessRefused, NotImplementedHere, ResourceLocked
from gateway.kernel.features.base import QueueFeature, Reason, overriding
from gateway.kernel.message import Arguments, Message
from gateway.kernel.paging import Paging
from gateway.kernel.priorities import ready_for
from gateway.kernel.settings import effective
from gateway.kernel.single_active import consumers_for

if TYPE_CHECKING:
    from gateway.kernel.journal import Journal

#: How many messages of a long queue stay in memory (R134).
RESIDENT_MESSAGES: Final = 2048


class Outcome(Enum):
    """What became of a delivery."""

    ACCEPTED = auto()
    REQUEUED = auto()
    REJECTED = auto()


class QueuedMessage:
    """A message's place in one queue.

    ``position`` orders it, ``deliveries`` counts how often it was handed out and came back, ``is_redelivered`` says
    that somebody may have seen it, ``is_durable`` that the store knows of it.
    """

    __slots__ = ("deliveries", "enqueued_at_ms", "is_durable", "is_redelivered", "message", "position")

    def __init__(self, message: Message, position: int, enqueued_at_ms: int, is_durable: bool) -> None:
        self.message = message
        self.position = position
        self.enqueued_at_ms = enqueued_at_ms
        self.is_durable = is_durable
        self.is_redelivered = False
        self.deliveries = 0


class Queue:
    """One queue of one virtual host. Owns its waiting messages and its round of consumers.

    ``id`` is the queue's number in the store, 0 for one that does not survive a restart. ``owner`` is the connection
    an exclusive queue belongs to. ``settings`` are what its arguments and the policies make of it; ``unsettled`` counts
    the messages that are with consumers. ``has_expirations`` says that some message asked to expire, ``stores_all``
    that messages survive whatever their publishers said (R141). ``refit`` is called when the queue turns out to need
    other features than it has.
    """

    __slots__ = (
        "_admitting",
        "_diverting",
        "_dropping",
        "_due",
        "_enqueuing",
        "_features",
        "_journal",
        "_refit",
        "_restoring",
        "_retrying",
        "_returning",
        "_showing",
        "_taking",
        "_using",
        "arguments",
        "consumers",
        "counters",
        "delays",
        "had_consumer",
        "has_expirations",
        "id",
        "is_auto_delete",
        "is_deleted",
        "is_durable",
        "name",
        "owner",
        "ready",
        "settings",
        "stores_all",
        "unsettled",
        "vhost_name",
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
        refit: "Callable[[Queue], None]" = lambda queue: None,
    ) -> None:
        self.vhost_name = vhost_name
        self.name = name
        self.id = id
        self.is_durable = is_durable
        self.is_auto_delete = is_auto_delete
        self.owner = owner
        self.arguments: Arguments = arguments or {}
        self.consumers = consumers_for(self.arguments)
        self.counters = Counters()
        self.delays: Delays | None = None
        self.had_consumer = False
        self.has_expirations = False
        self.stores_all = self.arguments.get("x-queue-type") == "quorum"
        self.is_deleted = False
        self.settings = effective(self.arguments)
        self.unsettled = 0
        self._journal = journal
        self._refit = refit
        self._features: tuple[QueueFeature, ...] = ()
        paging = Paging(journal)
        self.ready = ready_for(self.arguments, paging.page_out, paging.page_in, resident_messages)
        self.equip(features)

    def __len__(self) -> int:
        """How many messages wait, those with consumers not counted."""
        return len(self.ready)

    def equip(self, features: tuple[QueueFeature, ...]) -> None:
        """Replace the features, as a change of policy does; those that stay in kind keep what they know."""
        earlier = {type(feature): feature for feature in self._features}
        self._features = features
        self._diverting = overriding(features, "diverts")
        self._admitting = overriding(features, "admit")
        self._returning = overriding(features, "returning")
        self._enqueuing = overriding(features, "enqueued")
        self._restoring = overriding(features, "restored")
        self._due = overriding(features, "due")
        self._showing = overriding(features, "shown")
        self._taking = overriding(features, "taken")
        self._retrying = overriding(features, "retries")
        self._dropping = overriding(features, "dropped")
        self._using = overriding(features, "used")
        for feature in earlier.values():
            feature.retired(self)
        for feature in features:
            if type(feature) in earlier:
                feature.inherit(earlier[type(feature)])
        for feature in features:
            feature.fitted(self)

    # Messages in

    def offer(self, message: Message) -> Reason | None:
        """Take the message in, or return the reason it was refused."""
        if self._diverting and any(feature.diverts(self, message) for feature in self._diverting):
            return None
        for feature in self._admitting:
            if (refusal := feature.admit(self, message)) is not None:
                return refusal
        self.counters.publish += 1
        consumer = None if self.ready.length else self.consumers.next()
        if consumer is not None and not consumer.needs_settling:
            self.counters.deliver_no_ack += 1
            consumer.deliver(consumer, message, False, None)
            return None
        entry = self._enter(message)
        if consumer is not None:
            self._hand_over(consumer, entry)
            return None
        self.ready.append(entry)
        if message.header.expiration_ms is not None:
            self._expect_expirations()
        for feature in self._enqueuing:
            feature.enqueued(self, entry)
        return None

    def _expect_expirations(self) -> None:
        """A message will expire on its own: no policy says so, so the queue may lack what it takes (R51)."""
        if not self.has_expirations:
            self.has_expirations = True
            self._refit(self)

    def _enter(self, message: Message, due_at_ms: int = 0) -> QueuedMessage:
        """Give a message its place, in the store too if it has to survive."""
        journal = self._journal
        journal.position = position = journal.position + 1
        if self.id and (message.header.is_persistent or self.stores_all):
            entry = QueuedMessage(message, position, journal.now_ms, True)
            journal.enqueued(self.id, entry, due_at_ms)
            return entry
        return QueuedMessage(message, position, journal.now_ms, False)

    def restore(self, change: Enqueued, is_redelivered: bool) -> None:
        """Take in a message that recovery found in the store."""
        if change.due_at_ms and self.delays is not None:
            self.delays.restore(change, is_redelivered)
            return
        self.ready.restore(change, is_redelivered)
        if change.expires_at_ms:
            self._expect_expirations()
        for feature in self._restoring:
            feature.restored(self, change)

    # Messages held back

    def delaying(self, release: "Callable[[QueuedMessage], None] | None" = None) -> Delays:
        """Return what the queue holds back, an empty place from now on; ``release`` unless said otherwise follows."""
        if self.delays is None:
            self.delays = Delays(self._journal, release or self.release)
        return self.delays

    def hold(self, message: Message, due_at_ms: int) -> QueuedMessage:
        """Give a message that just came its place in the store, where it does not take part before ``due_at_ms``."""
        return self._enter(message, due_at_ms)

    def hold_again(self, entry: QueuedMessage, due_at_ms: int) -> None:
        """Count a message back from a consumer, where it does not take part before ``due_at_ms``."""
        entry.deliveries += 1
        entry.is_redelivered = True
        if entry.is_durable:
            self._journal.requeued(self.id, entry, due_at_ms)

    def release(self, entry: QueuedMessage) -> None:
        """Let a message take part that was held back: in its old place if it has been out, else as the youngest."""
        if entry.deliveries:
            self._come_back(entry)
            self.dispatch()
            return
        diverting, self._diverting = self._diverting, ()  # what has waited goes straight on
        try:
            self.offer(entry.message)
        finally:
            self._diverting = diverting
        self.forget(entry)

    # Messages out

    def get(self) -> QueuedMessage | None:
        """Take a message for somebody who does not consume (R90)."""
        self.use()
        return self.take()

    def take(self) -> QueuedMessage | None:
        """Remove and return the oldest message still worth delivering; the caller settles it later."""
        ready = self.ready
        while ready.length:
            try:
                entry = ready.popleft()
            except IndexError:  # what was left had lost its content
                return None
            reason = self._reason_against(entry) if self._due else None
            if reason is None:
                self.unsettled += 1
                for feature in self._taking:
                    feature.taken(self)
                return entry
            self.forget(entry)
            self.drop(entry.message, reason)
        return None

    def dispatch(self) -> None:
        """Hand waiting messages out for as long as somebody has capacity."""
        while self.ready.length:
            consumer = self.consumers.next()
            if consumer is None:
                return
            entry = self.take()
            if entry is None:
                return
            self.unsettled -= 1
            if consumer.needs_settling:
                self._hand_over(consumer, entry)
            else:
                self.counters.deliver_no_ack += 1
                self.counters.redeliver += entry.is_redelivered
                self.forget(entry)
                consumer.deliver(consumer, self.shown(entry), entry.is_redelivered, None)

    def shown(self, entry: QueuedMessage) -> Message:
        """Return the message of a delivery as the consumer is to see it: what is stored stays as it was published."""
        message = entry.message
        if entry.deliveries:
            for feature in self._showing:
                message = feature.shown(self, entry, message)
        return message

    def accept(self, entry: QueuedMessage) -> None:
        """Conclude a delivery: the message is consumed."""
        self.unsettled -= 1
        self.counters.ack += 1
        if entry.is_durable:
            self._journal.dequeued(entry.position, entry.message)

    def settle(self, entry: QueuedMessage, outcome: Outcome) -> None:
        """Conclude a delivery: the message is consumed, comes back to its place, or is refused for good.

        A message that came back waits for the next ``dispatch``, so that many can come back in order first. One that
        comes back to a deleted queue is gone with it.
        """
        if outcome is Outcome.ACCEPTED or self.is_deleted:
            self.accept(entry)
            return
        self.unsettled -= 1
        if outcome is Outcome.REQUEUED:
            entry.deliveries += 1
            entry.is_redelivered = True
            self._come_back(entry)
        elif not (self._retrying and any(feature.retries(self, entry) for feature in self._retrying)):
            self.forget(entry)
            self.drop(entry.message, Reason.REJECTED)

    def _come_back(self, entry: QueuedMessage) -> None:
        for feature in self._returning:
            if (reason := feature.returning(self, entry)) is not None:
                self.forget(entry)
                self.drop(entry.message, reason)
                return
        if entry.is_durable:
            self._journal.requeued(self.id, entry)
        self.ready.put_back(entry)
        for feature in self._enqueuing:
            feature.enqueued(self, entry)

    def consumed(self, entry: QueuedMessage) -> None:
        """Conclude a message that was taken and needs no settling."""
        self.unsettled -= 1
        self.forget(entry)

    def drop_head(self, reason: Reason) -> None:
        """Drop the oldest waiting message for this reason."""
        entry = self.ready.popleft()
        self.forget(entry)
        self.drop(entry.message, reason)

    def drop_these(self, positions: set[int], reason: Reason) -> None:
        """Drop those of the messages at these positions that wait, wherever they stand, for this reason."""
        for entry in self.ready.remove(positions):
            self.forget(entry)
            self.drop(entry.message, reason)

    def drop(self, message: Message, reason: Reason) -> None:
        """Tell the features that a message is gone, or stayed out, for this reason."""
        for feature in self._dropping:
            feature.dropped(self, message, reason)

    def purge(self) -> int:
        """Forget every waiting message; return how many there were. None is dead-lettered (R39)."""
        count = len(self.ready)
        entries, segments = self.ready.clear()
        for entry in entries:
            self.forget(entry)
        for segment in segments:
            self._journal.dequeued_segment(segment)
        return count

    # Consumers

    def consume(
        self,
        tag: str,
        subscriber: Subscriber,
        outlet: Outlet,
        *,
        needs_settling: bool,
        is_exclusive: bool = False,
        priority: int = 0,
        credit: Credit | None = None,
        shared_credit: Credit | None = None,
        arguments: Arguments | None = None,
    ) -> Consumer:
        """Add a consumer; deliveries start with the next ``dispatch``.

        :raises AccessRefused: when this is exclusive and not the only one it can be, or a present one is (R95, R97).
        :raises NotImplementedHere: when it is to share a limit and this queue has none of that (R141).
        """
        if shared_credit is not None and not self.shares_credit:
            raise NotImplementedHere(f"queue '{self.name}' in vhost '{self.vhost_name}' does not support global qos")
        is_shared = len(self.consumers) or not self.consumers.permit_exclusive
        if any(consumer.is_exclusive for consumer in self.consumers) or (is_exclusive and is_shared):
            raise AccessRefused(f"queue '{self.name}' in vhost '{self.vhost_name}' in exclusive use")
        consumer = Consumer(
            self,
            tag,
            subscriber,
            outlet,
            needs_settling=needs_settling,
            is_exclusive=is_exclusive,
            priority=priority,
            credit=credit,
            shared_credit=shared_credit,
            arguments=arguments,
        )
        self.consumers.add(consumer)
        self.had_consumer = True
        return consumer

    def cancel(self, consumer: Consumer) -> None:
        """Take a consumer away; what it holds unsettled stays with it.

        Another may take its place, and is served by the next ``dispatch``: what comes back goes first (R96).
        """
        if consumer in self.consumers:
            self.consumers.remove(consumer)
            self.use()

    @property
    def shares_credit(self) -> bool:
        """Whether its consumers may share a limit with those of other queues."""
        return not self.stores_all

    def use(self) -> None:
        """Note that somebody had to do with the queue itself: a lease begins anew (R37, R38)."""
        for feature in self._using:
            feature.used(self)

    def reconsider(self, consumer: Consumer) -> None:
        """Let a consumer that waited take part again if it has capacity, and serve it."""
        if consumer.is_waiting and consumer in self.consumers and consumer.has_capacity:
            self.consumers.resume(consumer)
            if len(self.ready):
                self.dispatch()

    @property
    def is_unused(self) -> bool:
        """Whether an auto-delete queue has lived its life: it had a consumer and the last one is gone (R32)."""
        return self.had_consumer and not len(self.consumers)

    def require_owner(self, owner: object) -> None:
        """Refuse anyone but the owner of an exclusive queue (R31). :raises ResourceLocked: for any other."""
        if self.owner is not None and self.owner is not owner:
            raise ResourceLocked(self.locked)

    @property
    def locked(self) -> str:
        """What RabbitMQ says to those who may not use an exclusive queue."""
        return (
            f"cannot obtain exclusive access to locked queue '{self.name}' in vhost '{self.vhost_name}'. It could be "
            "originally declared on another connection or the exclusive property value does not match that of the "
            "original declaration."
        )

    def _hand_over(self, consumer: Consumer, entry: QueuedMessage) -> None:
        self.unsettled += 1
        self.counters.deliver += 1
        if entry.is_redelivered:
            self.counters.redeliver += 1
        consumer.charge()
        consumer.deliver(
            consumer, self.shown(entry) if entry.deliveries else entry.message, entry.is_redelivered, entry
        )

    def _reason_against(self, entry: QueuedMessage) -> Reason | None:
        for feature in self._due:
            if (reason := feature.due(self, entry)) is not None:
                return reason
        return None

    def forget(self, entry: QueuedMessage) -> None:
        """Let go of a message that is in none of the queue's places any more."""
        if entry.is_durable:
            self._journal.dequeued(entry.position, entry.message)
