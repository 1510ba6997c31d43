"""Tracing: the message events of a queue are recorded by the trace events of its virtual host."""

from typing import TYPE_CHECKING

from gateway.kernel.archives.departures import TracedPlace
from gateway.kernel.archives.trace_table import TracedMessage
from gateway.kernel.messages.death_records import DeathReason
from gateway.kernel.queueing.feature import QueueFeature

if TYPE_CHECKING:
    from gateway.kernel.archives.trace_events import TraceEvents
    from gateway.kernel.features.context import FeatureContext
    from gateway.kernel.messages.message import Message
    from gateway.kernel.messages.queued_message import QueuedMessage
    from gateway.kernel.queueing.delivery_outcome import DeliveryOutcome
    from gateway.kernel.queueing.queue_like import QueueLike


def tracing(queue: "QueueLike", context: "FeatureContext") -> "QueueTracing | None":
    """Return the feature while events are recorded; unnamed queues are internal and not traced."""
    events = context.trace_events
    return QueueTracing(queue, events) if events.is_on and queue.name else None


class QueueTracing(QueueFeature):
    """Records the events of one queue."""

    def __init__(self, queue: "QueueLike", events: "TraceEvents") -> None:
        policy = queue.settings.policy
        self._queue = queue
        self._name = queue.name
        self._events = events
        self._applied = "" if policy is None else f"policy {policy.name}"  # other settings need new features

    def accepted(self, message: "Message", position: int | None) -> None:
        """Record that the queue accepted a message, and what it applies to it: its policy."""
        events, name = self._events, self._name
        if events.table.is_on:
            events.table.enqueued(self._queue, message, position)
        if (
            not isinstance(message, TracedMessage)
            or (trace := message.trace) is None
            or trace.id != message.trace_id  # it is shared
        ):
            trace = events.trace_of(message, name, None)
        if trace is not None:
            events.traces.enqueued(trace, name, message, position, self._applied)

    def settled(self, entry: "QueuedMessage", outcome: "DeliveryOutcome") -> None:
        """Record the outcome of a delivery."""
        self._events.settled(self._queue, entry.message, entry.position, outcome)

    def refused(self, message: "Message", reason: DeathReason) -> None:
        """Record that a message was rejected."""
        self._events.dropped_from(self._queue, message, reason)

    def purged(self) -> None:
        """Record that the ready messages are gone; a deleted queue reports more below."""
        if not self._queue.is_deleted:
            self._events.left(TracedPlace(self._queue.name), "purged")

    def detached(self) -> None:
        """Record that the messages are gone with the queue."""
        if self._queue.is_deleted:
            self._events.left(TracedPlace(self._queue.name), "queue deleted")

    def dropped(self, message: "Message", reason: DeathReason) -> None:
        """Record that a message was dropped."""
        self._events.dropped_from(self._queue, message, reason)
