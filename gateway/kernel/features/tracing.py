"""Tracing: what happens to the messages of a queue is written down in the virtual host's table of events."""

from typing import TYPE_CHECKING

from gateway.kernel.messages.death_records import DeathReason
from gateway.kernel.queueing.feature import QueueFeature

if TYPE_CHECKING:
    from gateway.kernel.archives.trace_table import TraceTable
    from gateway.kernel.features.context import FeatureContext
    from gateway.kernel.messages.message import Message
    from gateway.kernel.messages.queued_message import QueuedMessage
    from gateway.kernel.queueing.queue import DeliveryOutcome, Queue


def tracing(queue: "Queue", context: "FeatureContext") -> "QueueTracing | None":
    """Return the feature, while the table is on; the places of the broker's own, without a name, are nobody's."""
    table = context.trace_table
    return QueueTracing(table) if table.is_on and queue.name else None


class QueueTracing(QueueFeature):
    """Tells the table of one queue."""

    def __init__(self, table: "TraceTable") -> None:
        self._table = table

    def accepted(self, queue: "Queue", message: "Message", position: int | None) -> None:
        """Tell that the queue took a message."""
        self._table.enqueued(queue, message, position)

    def settled(self, queue: "Queue", entry: "QueuedMessage", outcome: "DeliveryOutcome") -> None:
        """Tell how a delivery was concluded."""
        self._table.settled(queue, entry.message, entry.position, outcome)

    def refused(self, queue: "Queue", message: "Message", reason: DeathReason) -> None:
        """Tell that a message stayed out."""
        self._table.dropped_from(queue, message, reason)

    def dropped(self, queue: "Queue", message: "Message", reason: DeathReason) -> None:
        """Tell that a message is gone."""
        self._table.dropped_from(queue, message, reason)
