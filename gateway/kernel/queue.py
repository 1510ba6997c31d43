"""Messages waiting in order, and the consumers they go to.

A queue knows order and four moments (``admit``, ``enqueued``, ``due``, ``dropped``) and no feature by name. A message
is in one of three places: among the ``ready``, *unsettled* with a consumer, or gone.
"""

from enum import Enum, auto
from typing import TYPE_CHECKING, Final

from gateway.kernel.changes import Enqueued
from gateway.kernel.consumers import Consumer, Consumers, Credit, Outlet, Subscriber
from gateway.kernel.errors import AccessRefused, ResourceLocked
from gateway.kernel.features.base import QueueFeature, Reason, overriding
from gateway.kernel.message import Arguments, Message
from gateway.kernel.paging import Paging
from gateway.kernel.ready import Ready

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
    an exclusive queue belongs to. ``unsettled`` counts the messages that are with consumers.
    """

    __slots__ = (
        "_admitting",
        "_dropping",
        "_due",
        "_enqueuing",
        "_journal",
        "arguments",
        "consumers",
        "had_consumer",
        "id",
        "is_auto_delete",
        "is_deleted",
        "is_durable",
        "name",
        "owner",
        "ready",
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
    ) -> None:
        self.vhost_name = vhost_name
        self.name = name
        self.id = id
        self.is_durable = is_durable
        self.is_auto_delete = is_auto_delete
        self.owner = owner
        self.arguments: Arguments = arguments or {}
        self.consumers = Consumers()
        self.had_consumer = False
        self.is_deleted = False
        self.unsettled = 0
        self._journal = journal
        paging = Paging(journal)
        self.ready = Ready(paging.page_out, paging.page_in, resident_messages)
        self.equip(features)

    def __len__(self) -> int:
        """How many messages wait, those with consumers not counted."""
        return len(self.ready)

    def equip(self, features: tuple[QueueFeature, ...]) -> None:
        """Replace the features, as a change of policy does."""
        self._admitting = overriding(features, "admit")
        self._enqueuing = overriding(features, "enqueued")
        self._due = overriding(features, "due")
        self._dropping = overriding(features, "dropped")

    # Messages in

    def offer(self, message: Message) -> Reason | None:
        """Take the message in, or return the reason it was refused."""
        for feature in self._admitting:
            if (refusal := feature.admit(self, message)) is not None:
                self._dropped(message, refusal)
                return refusal
        consumer = None if self.ready.length else self.consumers.next()
        if consumer is not None and not consumer.needs_settling:
            consumer.deliver(consumer, message, False, None)
            return None
        entry = self._enter(message)
        if consumer is not None:
            self._hand_over(consumer, entry)
            return None
        self.ready.append(entry)
        for feature in self._enqueuing:
            feature.enqueued(self, entry)
        return None

    def _enter(self, message: Message) -> QueuedMessage:
        """Give a message its place, in the store too if it has to survive."""
        journal = self._journal
        journal.position = position = journal.position + 1
        if self.id and message.header.is_persistent:
            entry = QueuedMessage(message, position, journal.now_ms, True)
            journal.enqueued(self.id, entry)
            return entry
        return QueuedMessage(message, position, journal.now_ms, False)

    def restore(self, change: Enqueued, is_redelivered: bool) -> None:
        """Take in a message that recovery found in the store."""
        self.ready.restore(
            change.position, change.message_id, change.enqueued_at_ms, change.delivery_count, is_redelivered
        )

    # Messages out

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
                return entry
            self._forget(entry)
            self._dropped(entry.message, reason)
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
                self._forget(entry)
                consumer.deliver(consumer, entry.message, entry.is_redelivered, None)

    def accept(self, entry: QueuedMessage) -> None:
        """Conclude a delivery: the message is consumed."""
        self.unsettled -= 1
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
            if entry.is_durable:
                self._journal.requeued(self.id, entry)
            self.ready.put_back(entry)
        else:
            self._forget(entry)
            self._dropped(entry.message, Reason.REJECTED)

    def drop_head(self, reason: Reason) -> None:
        """Drop the oldest waiting message for this reason."""
        entry = self.ready.popleft()
        self._forget(entry)
        self._dropped(entry.message, reason)

    def purge(self) -> int:
        """Forget every waiting message; return how many there were. None is dead-lettered (R39)."""
        count = len(self.ready)
        entries, segments = self.ready.clear()
        for entry in entries:
            self._forget(entry)
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

        :raises AccessRefused: when either this or a present consumer is exclusive (R97).
        """
        if any(consumer.is_exclusive for consumer in self.consumers) or (is_exclusive and len(self.consumers)):
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
        """Take a consumer away; what it holds unsettled stays with it."""
        if consumer in self.consumers:
            self.consumers.remove(consumer)

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
        consumer.charge()
        consumer.deliver(consumer, entry.message, entry.is_redelivered, entry)

    def _reason_against(self, entry: QueuedMessage) -> Reason | None:
        for feature in self._due:
            if (reason := feature.due(self, entry)) is not None:
                return reason
        return None

    def _forget(self, entry: QueuedMessage) -> None:
        if entry.is_durable:
            self._journal.dequeued(entry.position, entry.message)

    def _dropped(self, message: Message, reason: Reason) -> None:
        for feature in self._dropping:
            feature.dropped(self, message, reason)
