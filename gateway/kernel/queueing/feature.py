"""Base class of queue features: one object per feature and queue, called at each step of a message's life."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gateway.kernel.compiling import mypyc_attr
from gateway.kernel.messages.death_records import DeathReason
from gateway.kernel.messages.message import Message

if TYPE_CHECKING:
    from gateway.kernel.journal.changes import Enqueued
    from gateway.kernel.messages.queued_message import QueuedMessage
    from gateway.kernel.queueing.delivery_outcome import DeliveryOutcome


@dataclass(frozen=True, slots=True)
class Rejection:
    """Keeps an arriving message out of a queue, and reports to its publisher that the queue rejected it."""

    reason: DeathReason = DeathReason.REJECTED


@mypyc_attr(allow_interpreted_subclasses=True)
class QueueFeature:
    """Base class whose methods do nothing; a feature overrides those that it needs.

    One object serves one queue; a feature that acts on its queue gets it when it is built.

    A queue sorts its features by overridden methods, so that a method without an override costs nothing.
    """

    def overrides(self, method: str) -> bool:
        """Return whether the feature acts in a method; its queue does not call the others."""
        return getattr(type(self), method) is not getattr(QueueFeature, method)

    # Life cycle of the feature

    def inherit(self, earlier: "QueueFeature") -> None:
        """Copy the state of an ``earlier`` object of the same type, which this one replaces on a change of settings."""

    def attached(self) -> None:
        """Called when the feature was added to its queue, which may already hold messages."""

    def detached(self) -> None:
        """Called when the queue was deleted or the feature removed; cancels timers and pending work."""

    # A message arrives

    def diverts(self, message: Message) -> bool:
        """Return whether the feature takes an arriving message instead of the queue; it counts as accepted."""
        return False

    def admit(self, message: Message) -> DeathReason | None:
        """Return why an arriving message must be refused, or ``None``. Has no side effects."""
        return None

    def arrives(self, message: Message) -> "Rejection | DeathReason | None":
        """Return whether a message that was not refused is rejected or dropped; called once for each that arrives.

        A ``DeathReason`` drops it: its publisher gets a confirm.
        """
        return None

    def refused(self, message: Message, reason: DeathReason) -> None:
        """Called when a message was refused, which its publisher learns; ``dropped`` is not called for it."""

    def returning(self, entry: "QueuedMessage") -> DeathReason | None:
        """Return why a message that a consumer returns must be dropped instead, or ``None``."""
        return None

    def accepted(self, message: Message, position: int | None) -> None:
        """Called when the queue accepted a new message; ``position`` is ``None`` if it was consumed at once."""

    @property
    def needs_position(self) -> bool:
        """Whether ``accepted`` uses the position. A stream assigns the positions of a long commit at its end."""
        return True

    def enqueued(self, entry: "QueuedMessage") -> None:
        """Called when a message was added to the ready messages, or returned to them."""

    def restored(self, change: "Enqueued") -> None:
        """Called when recovery restored a message; its content is in the store."""

    # A message leaves

    def due(self, entry: "QueuedMessage") -> DeathReason | None:
        """Return why a message about to be delivered must be dropped instead, or ``None``."""
        return None

    def shown(self, entry: "QueuedMessage", message: Message) -> Message:
        """Return the message as the consumer gets it, on a delivery that is not the first."""
        return message

    def taken(self) -> None:
        """Called when the head of the queue was taken, so that another message is next."""

    def retries(self, entry: "QueuedMessage") -> bool:
        """Return whether a rejected message is kept for another attempt instead of being ``dropped``."""
        return False

    def settled(self, entry: "QueuedMessage", outcome: "DeliveryOutcome") -> None:
        """Called when a delivery is settled."""

    def postponer(self, message: Message) -> "Callable[[Callable[[], None]], None] | None":
        """Return what makes the drop of a message in a later turn, or ``None`` if the queue shall drop it now."""
        return None

    def dropped(self, message: Message, reason: DeathReason) -> None:
        """Called when a message was removed or kept out for this reason."""

    def kept_out(self, message: Message, reason: DeathReason) -> None:
        """Called when an arriving message was dropped that never was in the queue; its publisher counts on that."""
        self.dropped(message, reason)

    # The queue

    def purged(self) -> None:
        """Called when the ready messages are removed on request; ``dropped`` is not called for them."""

    def holding(self) -> None:
        """Called when the queue gets its store of delayed messages and pending dead letters."""

    def used(self) -> None:
        """Called when a client declared the queue, fetched from it or cancelled a consumer."""
