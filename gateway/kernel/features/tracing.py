"""Tracing: the message events of a queue are recorded in the trace table of its virtual host."""

from typing import TYPE_CHECKING

from gateway.kernel.messages.death_records import DeathReason
from gateway.kernel.queueing.feature import QueueFeature

if TYPE_CHECKING:
    from gateway.kernel.archives.trace_table import TraceTable
    from gateway.kernel.features.context import FeatureContext
    from gateway.kernel.messages.message import Message
    from gateway.kernel.messages.queued_message import QueuedMessage
    from gateway.kernel.queueing.delivery_outcome import DeliveryOutcome
    from gateway.kernel.queueing.queue_like import QueueLike


def tracing(queue: "QueueLike", context: "FeatureContext") -> "QueueTracing | None":
    """Return the feature while the trace table is on; unnamed queues are internal and not traced."""
    table = context.trace_table
    return QueueTracing(queue, table) if table.is_on and queue.name else None


class QueueTracing(QueueFeature):
    """Records the events of one queue in the trace table."""

    def __init__(self, queue: "QueueLike", table: "TraceTable") -> None:
        self._queue = queue
        self._table = table

    def accepted(self, message: "Message", position: int | None) -> None:
        """Record that the queue accepted a message."""
        self._table.enqueued(self._queue, message, position)

    def settled(self, entry: "QueuedMessage", outcome: "DeliveryOutcome") -> None:
        """Record the outcome of a delivery."""
        self._table.settled(self._queue, entry.message, entry.position, outcome)

    def refused(self, message: "Message", reason: DeathReason) -> None:
        """Record that a message was rejected."""
        self._table.dropped_from(self._queue, message, reason)

    def dropped(self, message: "Message", reason: DeathReason) -> None:
        """Record that a message was dropped."""
        self._table.dropped_from(self._queue, message, reason)
