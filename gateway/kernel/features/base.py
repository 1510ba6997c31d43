"""What a queue can be taught: one object per feature, asked at four moments of a message's stay."""

from enum import Enum
from typing import TYPE_CHECKING

from gateway.kernel.message import Message

if TYPE_CHECKING:
    from gateway.kernel.queue import Queue, QueuedMessage


class Reason(Enum):
    """Why a message left its queue, or never entered it, without being consumed; the wire name (R100)."""

    REJECTED = "rejected"
    EXPIRED = "expired"
    MAXLEN = "maxlen"
    DELIVERY_LIMIT = "delivery_limit"


class QueueFeature:
    """Does nothing at every moment; a feature overrides those it is about.

    A queue sorts its features by the methods they override, so that a moment nobody cares about costs nothing.
    """

    def admit(self, queue: "Queue", message: Message) -> Reason | None:
        """A message arrives: return why it must stay out, or ``None``."""
        return None

    def enqueued(self, queue: "Queue", entry: "QueuedMessage") -> None:
        """A message took its place among the waiting ones."""

    def due(self, queue: "Queue", entry: "QueuedMessage") -> Reason | None:
        """A message is about to be delivered: return why it must not be any more, or ``None``."""
        return None

    def dropped(self, queue: "Queue", message: Message, reason: Reason) -> None:
        """A message left, or was kept out, for this reason."""


def overriding(features: "tuple[QueueFeature, ...]", moment: str) -> "tuple[QueueFeature, ...]":
    """Return the features that do something at this moment."""
    return tuple(f for f in features if getattr(type(f), moment) is not getattr(QueueFeature, moment))
