"""The dependencies of queue features."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gateway.kernel.archives.archives import Archives
    from gateway.kernel.archives.trace_events import TraceEvents
    from gateway.kernel.clock import Clock
    from gateway.kernel.features.deduplication_caches import DeduplicationCaches
    from gateway.kernel.features.offered_features import OfferedFeatures
    from gateway.kernel.journal.journal import Journal
    from gateway.kernel.queueing.queue_like import QueueLike
    from gateway.kernel.routing.dead_letter_publisher import DeadLetters


@dataclass(frozen=True, slots=True)
class FeatureContext:
    """Services of the virtual host that features use.

    Archived messages go to ``archives``, message events to ``trace_events``, keys of recent messages to
    ``deduplication_caches``. ``delete`` deletes a queue. ``offered`` are the features of plugins.
    """

    clock: "Clock"
    journal: "Journal"
    dead_letters: "DeadLetters"
    delete: "Callable[[QueueLike], object]"
    archives: "Archives"
    trace_events: "TraceEvents"
    deduplication_caches: "DeduplicationCaches"
    offered: "OfferedFeatures"
