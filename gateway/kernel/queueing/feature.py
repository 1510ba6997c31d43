"""What a queue can be taught: one object per feature, asked at the moments of a message's stay."""

from typing import TYPE_CHECKING

from gateway.kernel.messages.death_records import DeathReason
from gateway.kernel.messages.message import Message

if TYPE_CHECKING:
    from gateway.kernel.journal.changes import Enqueued
    from gateway.kernel.messages.queued_message import QueuedMessage
    from gateway.kernel.queueing.queue import DeliveryOutcome, Queue


class QueueFeature:
    """Does nothing at every moment; a feature overrides those it is about. One object serves one queue.

    A queue sorts its features by the methods they override, so that a moment nobody cares about costs nothing.
    """

    # Its own life

    def inherit(self, earlier: "QueueFeature") -> None:
        """Settings changed and this object takes the place of an ``earlier`` one of its type: keep what it knows."""

    def fitted(self, queue: "Queue") -> None:
        """The queue has this feature from now on, and may hold messages already."""

    def retired(self, queue: "Queue") -> None:
        """The queue is gone or has this feature no longer: cancel what was to happen later."""

    # A message comes

    def diverts(self, queue: "Queue", message: Message) -> bool:
        """A message arrives: return whether it goes another way. To its publisher it was taken."""
        return False

    def admit(self, queue: "Queue", message: Message) -> DeathReason | None:
        """A message arrives: return why it must stay out, or ``None``. Nothing happens to it by asking."""
        return None

    def refused(self, queue: "Queue", message: Message, reason: DeathReason) -> None:
        """A message stays out for this reason, and its publisher hears of it. That is not being ``dropped``."""

    def returning(self, queue: "Queue", entry: "QueuedMessage") -> DeathReason | None:
        """A message is about to come back from a consumer: return why it must be dropped instead, or ``None``."""
        return None

    def accepted(self, queue: "Queue", message: Message, position: int | None) -> None:
        """The queue took a message that is new to it; ``position`` is its place, ``None`` if it needs none."""

    def enqueued(self, queue: "Queue", entry: "QueuedMessage") -> None:
        """A message took its place among the waiting ones, or came back to it."""

    def restored(self, queue: "Queue", change: "Enqueued") -> None:
        """Recovery gave a message its place back; its content is in the store."""

    # A message goes

    def due(self, queue: "Queue", entry: "QueuedMessage") -> DeathReason | None:
        """A message is about to be delivered: return why it must not be any more, or ``None``."""
        return None

    def shown(self, queue: "Queue", entry: "QueuedMessage", message: Message) -> Message:
        """A message is being delivered, not for the first time: return it as the consumer is to see it."""
        return message

    def taken(self, queue: "Queue") -> None:
        """The head was handed out: another message is next."""

    def retries(self, queue: "Queue", entry: "QueuedMessage") -> bool:
        """A message was rejected: return whether it is kept for another try instead of being ``dropped``."""
        return False

    def settled(self, queue: "Queue", entry: "QueuedMessage", outcome: "DeliveryOutcome") -> None:
        """A delivery is being concluded."""

    def dropped(self, queue: "Queue", message: Message, reason: DeathReason) -> None:
        """A message left, or was kept out, for this reason."""

    # The queue itself

    def used(self, queue: "Queue") -> None:
        """Somebody declared the queue, fetched from it, or ceased to consume from it."""
