"""A queue that takes each message once: one whose key came lately is gone, to its publisher as if it had been taken."""

from typing import TYPE_CHECKING

from gateway.kernel.features.base import QueueFeature
from gateway.kernel.message import Message
from gateway.kernel.recollection import DEFAULT_SIZE, Recollection

if TYPE_CHECKING:
    from gateway.kernel.features.surroundings import Surroundings
    from gateway.kernel.queue import Queue


def deduplication(queue: "Queue", surroundings: "Surroundings") -> "Deduplication | None":
    """Return the feature, if the queue's settings call for it."""
    settings = queue.settings
    if not settings.is_on("message-deduplication"):
        return None
    size = settings.number("cache-size") or DEFAULT_SIZE
    return Deduplication(Recollection(surroundings.clock, size, settings.number("cache-ttl")))


class Deduplication(QueueFeature):
    """Passes over messages that repeat the key of an earlier one."""

    def __init__(self, recollection: Recollection) -> None:
        self._recollection = recollection

    def inherit(self, earlier: QueueFeature) -> None:
        """Go on remembering what was seen."""
        assert isinstance(earlier, Deduplication)
        self._recollection.take_over(earlier._recollection)

    def diverts(self, queue: "Queue", message: Message) -> bool:
        """Pass a message over that came before."""
        return self._recollection.is_repeated(message)
