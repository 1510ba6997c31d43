"""Archiving: every message that a queue accepts is also appended to an archive."""

from typing import TYPE_CHECKING

from gateway.kernel.archives.archive import QUEUE
from gateway.kernel.archives.archives import Archives
from gateway.kernel.queueing.feature import QueueFeature

if TYPE_CHECKING:
    from gateway.kernel.features.context import FeatureContext
    from gateway.kernel.messages.message import Message
    from gateway.kernel.queueing.queue_like import QueueLike


def archiving(queue: "QueueLike", context: "FeatureContext") -> "Archiving | None":
    """Return the feature if a policy requires it; unnamed queues are internal and not archived."""
    return Archiving(queue, context.archives) if queue.name and queue.settings.enabled_by_policy("archive") else None


class Archiving(QueueFeature):
    """Archives each message once, when it is enqueued; a requeued message is not archived again."""

    def __init__(self, queue: "QueueLike", archives: Archives) -> None:
        self._queue = queue
        self._archives = archives
        self._table = queue.settings.text_by_policy("archive-table")
        self._archive = archives.open(QUEUE, queue.name, self._table)

    def attached(self) -> None:
        """Open the archive again; the feature that this one replaces has just retired it."""
        self._archive = self._archives.open(QUEUE, self._queue.name, self._table)

    def detached(self) -> None:
        """Stop archiving."""
        self._archives.retire(QUEUE, self._queue.name)

    def accepted(self, message: "Message", position: int | None) -> None:
        """Archive a message."""
        self._archive.keep(message)

    @property
    def needs_position(self) -> bool:
        """Whether ``accepted`` needs the position: no."""
        return False
