"""Deduplication: a queue drops messages whose key it has seen recently; their publishers get a confirm."""

from typing import TYPE_CHECKING

from gateway.kernel.archives.departures import TracedPlace
from gateway.kernel.features.deduplication_cache import DEFAULT_SIZE, DeduplicationCache
from gateway.kernel.features.deduplication_caches import QUEUE
from gateway.kernel.messages.death_records import DeathReason
from gateway.kernel.messages.message import Message
from gateway.kernel.queueing.feature import QueueFeature

if TYPE_CHECKING:
    from gateway.kernel.archives.trace_events import TraceEvents
    from gateway.kernel.features.context import FeatureContext
    from gateway.kernel.features.deduplication_caches import DeduplicationCaches
    from gateway.kernel.queueing.queue import Queue


def deduplication(queue: "Queue", context: "FeatureContext") -> "Deduplication | None":
    """Return the feature if the queue's settings require it."""
    settings = queue.settings
    if not settings.is_on("message-deduplication"):
        return None
    size = settings.number("cache-size") or DEFAULT_SIZE
    return Deduplication(queue, context.deduplication_caches, context.trace_events, size, settings.number("cache-ttl"))


class Deduplication(QueueFeature):
    """Drops messages that repeat the key of an earlier one."""

    def __init__(
        self,
        queue: "Queue",
        caches: "DeduplicationCaches",
        trace_events: "TraceEvents",
        size: int,
        ttl_ms: int | None,
    ) -> None:
        self._queue = queue
        self._trace_events = trace_events
        self._deduplication_caches = caches
        self._size = size
        self._ttl_ms = ttl_ms
        self._cache = self._open()

    def attached(self) -> None:
        """Open the cache again; the feature that this one replaces has just retired it."""
        self._cache = self._open()

    def detached(self) -> None:
        """Stop deduplication; delete the cache with the queue."""
        if self._queue.is_deleted:
            self._deduplication_caches.close(QUEUE, self._queue.name)
        else:
            self._deduplication_caches.retire(QUEUE, self._queue.name)

    def diverts(self, message: Message) -> bool:
        """Drop a message whose key is in the cache."""
        is_repeated = self._cache.is_repeated(message)
        if is_repeated:
            self._trace_events.kept_out(TracedPlace(self._queue.name), message, "duplicate")
        return is_repeated

    def refused(self, message: Message, reason: DeathReason) -> None:
        """Remove the key of a rejected message: its publisher will send it again."""
        self._cache.forget(message)

    def _open(self) -> DeduplicationCache:
        return self._deduplication_caches.open(
            QUEUE, self._queue.name, self._size, self._ttl_ms, survives=self._queue.id != 0
        )
