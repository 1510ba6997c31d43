"""The events of the messages of one virtual host: each gets a number, and is recorded where tracing is on."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from gateway.kernel.archives.departures import TracedPlace
from gateway.kernel.archives.message_observer import MessageObserver
from gateway.kernel.archives.message_trace import MOST_ROUTES
from gateway.kernel.archives.trace_table import TracedMessage, TraceTable
from gateway.kernel.messages.message import Message
from gateway.kernel.queueing.delivery_outcome import DeliveryOutcome

if TYPE_CHECKING:
    from gateway.kernel.archives.message_trace import MessageTrace
    from gateway.kernel.archives.message_traces import MessageTraces
    from gateway.kernel.clock import Clock
    from gateway.kernel.journal.journal import Journal
    from gateway.kernel.messages.death_records import DeathReason
    from gateway.kernel.messages.origin import Origin
    from gateway.kernel.messages.queued_message import QueuedMessage
    from gateway.kernel.queueing.queue_identity import QueueIdentity

#: Message numbers start at the time in milliseconds, so that two runs of the node never use the same ones.
_NUMBERS_PER_MS: Final = 1 << 20

#: The kind of event of each outcome of a delivery, and the word for the outcome.
_WORDS: Final = {
    outcome: ("requeue" if outcome is DeliveryOutcome.REQUEUED else "settle", outcome.name.lower())
    for outcome in DeliveryOutcome
}


class TraceEvents(MessageObserver):
    """Passes each event to the trace table and to the traces in memory, as far as they are on.

    A message has one number in both. Of messages that are not sampled, only the table records events.
    """

    def __init__(self, table: TraceTable, traces: "MessageTraces", journal: "Journal", clock: "Clock") -> None:
        self.table = table
        self.traces = traces
        self._journal = journal
        self._number = clock.wall_ms() * _NUMBERS_PER_MS

    @property
    def is_on(self) -> bool:
        """Whether events are recorded."""
        return self.table.is_on or self.traces.is_on

    def published(self, message: Message, queues: "tuple[QueueIdentity, ...]", origin: "Origin | None") -> Message:
        """Record a publish and the queues it is routed to; return the message with its number, if it gets one."""
        traces, journal, is_in_table = self.traces, self._journal, self.table.is_on
        is_sampled = traces.is_full or (traces.is_on and traces.chooses())
        if not is_sampled and not is_in_table:
            return message
        self._number = number = self._number + 1
        # the publisher holds another object for this message: the journal must not report it as stored nowhere
        journal.store_indirectly()
        trace = None
        if is_sampled:
            trace = traces.published(number, message, queues, origin)
            if not queues:
                traces.noted(trace, "drop", "", None, "unroutable")
        else:
            traces.skipped()
        numbered = TracedMessage(message.exchange, message.routing_key, message.header, message.body, number, trace)
        if is_in_table:
            self.table.published(numbered, queues, origin)
        return numbered

    def delivered(
        self,
        message: Message,
        queue: "QueueIdentity",
        redelivered: bool,
        origin: "Origin",
        entry: "QueuedMessage | None",
    ) -> None:
        """Record a delivery."""
        position, name = None if entry is None else entry.position, queue.name
        if self.table.is_on:
            self.table.delivered(message, queue, redelivered, origin, position)
        if (
            not isinstance(message, TracedMessage)
            or (trace := message.trace) is None
            or trace.id != message.trace_id  # it is shared
        ):
            trace = self.trace_of(message, name, position)
        if trace is not None:
            self.traces.delivered(trace, name, position, origin, redelivered)

    def settled(self, queue: "QueueIdentity", message: Message, position: int, outcome: "DeliveryOutcome") -> None:
        """Record the outcome of a delivery."""
        if self.table.is_on:
            self.table.settled(queue, message, position, outcome)
        if (trace := self.trace_of(message, queue.name, position)) is not None:
            if outcome is DeliveryOutcome.ACCEPTED:
                self.traces.accepted(trace, queue.name, position, "accepted")
            else:
                kind, word = _WORDS[outcome]
                self.traces.noted(trace, kind, queue.name, position, word)

    def dropped_from(self, queue: "QueueIdentity", message: Message, reason: "DeathReason") -> None:
        """Record that a queue dropped or rejected a message."""
        if self.table.is_on:
            self.table.dropped_from(queue, message, reason)
        if (trace := self.trace_of(message, queue.name, None)) is not None:
            kind = "expire" if reason.value == "expired" else "drop"
            self.traces.noted(trace, kind, queue.name, None, reason.value)

    def dead_lettered(self, letter: Message, reason: "DeathReason") -> None:
        """Record the publish of a dead letter."""
        if self.table.is_on:
            self.table.dead_lettered(letter, reason)
        if isinstance(letter, TracedMessage) and (trace := self.trace_of(letter, "", None)) is not None:
            self.traces.dead_lettered(trace, letter, reason.value)

    # Of the traces in memory only

    def refused(self, message: Message, origin: "Origin", reason: str) -> None:
        """Record a publish that an interceptor refuses."""
        if self.traces.is_on and self.traces.chooses():
            self._number += 1
            trace = self.traces.published(self._number, message, (), origin)
            self.traces.noted(trace, "refuse", "", None, reason)

    def delayed(self, place: TracedPlace, message: Message, position: int, due_at_ms: int) -> None:
        """Record that a queue or an exchange delays a message until ``due_at_ms`` (wall time)."""
        if self.traces.is_on and (trace := self.trace_of(message, place.queue, position)) is not None:
            self.traces.delayed(trace, place, message, position, due_at_ms)

    def due(
        self, place: TracedPlace, message: Message, position: int, queues: "Sequence[QueueIdentity] | None"
    ) -> None:
        """Record that a delay is over, and the ``queues`` to which an exchange routes the message then."""
        if not self.traces.is_on or (trace := self.trace_of(message, place.queue, position)) is None:
            return
        self.traces.noted_at(trace, "due", place, position)
        for queue in (queues or ())[:MOST_ROUTES]:
            self.traces.noted(trace, "route", queue.name)
        if queues and len(queues) > MOST_ROUTES:
            self.traces.noted(trace, "left-out", detail=f"{len(queues) - MOST_ROUTES} routes")
        if queues is not None and not queues:
            self.traces.noted(trace, "drop", "", None, "unroutable")

    def kept_out(self, place: TracedPlace, message: Message, reason: str) -> None:
        """Record that a message is dropped for a reason of the broker's own: a ``duplicate``, a ``cycle``."""
        if self.traces.is_on and (trace := self.trace_of(message, place.queue, None)) is not None:
            self.traces.noted_at(trace, "drop", place, None, reason)

    def cancelled(self, place: TracedPlace, position: int) -> None:
        """Record that an operator deleted a delayed message."""
        if (trace := self.traces.trace_at(place.queue, position)) is not None:
            self.traces.noted_at(trace, "drop", place, position, "cancelled")

    def left(self, place: TracedPlace, word: str) -> None:
        """Record that the messages of a place are gone; ``word`` is one of ``whereabouts``, such as ``purged``."""
        self.traces.left(place, word)

    def trace_of(self, message: Message, queue: str, position: int | None) -> "MessageTrace | None":
        """Return the trace of a message in a queue, for an event of this message alone; ``None`` if it has none."""
        if isinstance(message, TracedMessage):
            trace = message.trace
            if trace is not None and (trace.count > 1 or trace.id != message.trace_id):  # it is shared
                trace = message.trace = self.traces.own_trace(message.trace_id)
            return trace
        return self.traces.trace_of(message, queue, position)
