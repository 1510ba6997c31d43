"""Archiving: every message that a queue takes is kept for good as well."""

from typing import TYPE_CHECKING

from gateway.kernel.archives.archive import QUEUE
from gateway.kernel.archives.archives import Archives
from gateway.kernel.queueing.feature import QueueFeature

if TYPE_CHECKING:
    from gateway.kernel.features.context import FeatureContext
    from gateway.kernel.messages.message import Message
    from gateway.kernel.queueing.queue import Queue


def archiving(queue: "Queue", context: "FeatureContext") -> "Archiving | None":
    """Return the feature, if a policy asks for it; what has no name is nobody's queue."""
    return Archiving(queue, context.archives) if queue.name and queue.settings.orders("archive") else None


class Archiving(QueueFeature):
    """Keeps messages as they come, once each: one that comes back is not kept again."""

    def __init__(self, queue: "Queue", archives: Archives) -> None:
        self._archives = archives
        self._archive = archives.open(QUEUE, queue.name)

    def fitted(self, queue: "Queue") -> None:
        """Claim the archive, which an earlier feature of this kind gave up a moment ago."""
        self._archive = self._archives.open(QUEUE, queue.name)

    def retired(self, queue: "Queue") -> None:
        """Keep nothing more."""
        self._archives.retire(QUEUE, queue.name)

    def accepted(self, queue: "Queue", message: "Message", position: int | None) -> None:
        """Keep a message."""
        self._archive.keep(message)
