"""What features need of the world around their queue."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gateway.kernel.archives.archives import Archives
    from gateway.kernel.archives.trace_table import TraceTable
    from gateway.kernel.clock import Clock
    from gateway.kernel.features.deduplication_caches import Recollections
    from gateway.kernel.journal.journal import Journal
    from gateway.kernel.queueing.queue import Queue
    from gateway.kernel.routing.dead_letter_publisher import DeadLetters


@dataclass(frozen=True, slots=True)
class FeatureContext:
    """The clock, the journal and its time, the way out for dead letters, and the way to have a queue deleted.

    What is to be kept for good goes into the ``archives``, what happens to messages into the ``trace_table``. What was
    seen lately is in the ``deduplication_caches``.
    """

    clock: "Clock"
    journal: "Journal"
    dead_letters: "DeadLetters"
    delete: "Callable[[Queue], object]"
    archives: "Archives"
    trace_table: "TraceTable"
    deduplication_caches: "Recollections"
