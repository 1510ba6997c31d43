"""The traces of messages: the latest events of one virtual host in memory, by message, in order.

The oldest traces are dropped first: the store has a limit of messages and one of bytes.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gateway.kernel.archives.departures import Departures
from gateway.kernel.archives.latest_traces import LatestTraces
from gateway.kernel.archives.message_trace import (
    EVENT_BYTES,
    MOST_EVENTS,
    MessageTrace,
    Publication,
    Row,
    SharedEvent,
)

if TYPE_CHECKING:
    from gateway.kernel.archives.departures import TracedPlace
    from gateway.kernel.journal.journal import Journal
    from gateway.kernel.messages.message import Message
    from gateway.kernel.messages.origin import Origin
    from gateway.kernel.queueing.queue_identity import QueueIdentity

#: A full store drops this part of its limits at once, so that not each new message pays for the drop of an old one.
_ROOM: Final = 128


@dataclass(frozen=True, slots=True)
class TraceRules:
    """The fraction of messages that is traced, from 0 (off) to 1, and the limits of each virtual host's store."""

    sample: float = 0.0
    most_messages: int = 10_000
    most_bytes: int = 32 * 2**20


class MessageTraces:
    """Owns the traces of one virtual host.

    A message that was paged out has lost its number; it is found by its place in the queue, or as a stored content.
    ``evicted`` counts traces that were dropped for later ones, ``departures`` are the purges and deletions.
    Messages are traced while it ``is_on``, each of them while it ``is_full``.
    """

    def __init__(self, journal: "Journal", rules: TraceRules) -> None:
        self.use(rules)
        self.trace(rules.sample)
        self.bytes = 0
        self.evicted = 0
        self._journal = journal
        self._traces = LatestTraces()
        self._trace_by_place: dict[tuple[str, int], MessageTrace] = {}
        self._trace_by_content: dict[int, MessageTrace] = {}
        self._share = 0.0
        self._publication: Publication | None = None  # of the latest trace, as are the next four
        self._queues: tuple[QueueIdentity, ...] = ()
        self._enqueue: SharedEvent | None = None
        self._deliver: SharedEvent | None = None
        self._settle: SharedEvent | None = None
        self.departures = Departures()

    def __len__(self) -> int:
        return self._traces.count

    def __iter__(self) -> Iterator[MessageTrace]:
        """Return the traces, the latest first."""
        return iter(self._traces)

    def use(self, rules: TraceRules) -> None:
        """Set the limits of the store."""
        self.rules = rules
        self._most_messages = rules.most_messages
        self._most_bytes = rules.most_bytes

    def trace(self, sample: float) -> None:
        """Trace this fraction of the messages from now on."""
        self.sample = sample
        self.is_on = sample > 0
        self.is_full = sample >= 1

    def get(self, id: int) -> MessageTrace | None:
        """Return the trace of this number."""
        return self._traces.get(id)

    def clear(self) -> None:
        """Drop all traces."""
        self._traces.clear()
        self._trace_by_place.clear()
        self._trace_by_content.clear()
        self._publication = self._enqueue = self._deliver = self._settle = None
        self._queues = ()
        self.departures = Departures()
        self.bytes = 0

    def chooses(self) -> bool:
        """Return whether the next message is traced: one in every ``1 / sample``, evenly."""
        if self.is_full:
            return True
        self._share += self.sample
        if self._share < 1:
            return False
        self._share -= 1
        return True

    # Events

    def published(
        self,
        id: int,
        message: "Message",
        queues: "tuple[QueueIdentity, ...]",
        origin: "Origin | None",
    ) -> MessageTrace:
        """Begin a trace with the publish and the queues that the message is routed to."""
        journal, publication = self._journal, self._publication
        at_ms = journal.turn_ms or journal.now_ms
        if (
            publication is None
            or message.header is not publication.header
            or message.routing_key is not publication.routing_key
            or queues is not self._queues
            or at_ms != publication.at_ms
            or origin is not publication.origin
            or len(message.body) != publication.body_size
            or message.exchange is not publication.exchange
        ):
            self._queues = queues
            publication = self._publication = Publication(message, at_ms, queues, origin)
        traces = self._traces
        trace = traces.begin(id, publication)
        self.bytes += publication.size
        if self.bytes > self._most_bytes or traces.count > self._most_messages:
            self._evict()
        return trace

    def skipped(self) -> None:
        """Note that the next number belongs to a message that is not traced here."""
        self._traces.skip()

    def enqueued(self, trace: MessageTrace, queue: str, message: "Message", position: int | None, applied: str) -> None:
        """Note that a queue accepted a message, and what the queue ``applied``: its policy."""
        if trace.rows is None and trace.enqueue is None and queue == trace.publication.only_queue:
            journal = self._journal
            at_ms, event = journal.turn_ms or journal.now_ms, self._enqueue
            if event is None or at_ms != event.at_ms or applied != event.detail:
                event = self._enqueue = SharedEvent(at_ms, applied, None)
            trace.enqueue = event
            trace.position = position
        else:
            self.noted(trace, "enqueue", queue, position, applied)
        if position is not None:
            self._locate(trace, queue, message, position)

    def delayed(
        self, trace: MessageTrace, place: "TracedPlace", message: "Message", position: int, due_at_ms: int
    ) -> None:
        """Note that a queue or an exchange delays a message."""
        self.noted_at(trace, "delay", place, position, str(due_at_ms))
        self._locate(trace, place.queue, message, position)

    def noted_at(
        self, trace: MessageTrace, kind: str, place: "TracedPlace", position: int | None = None, detail: str = ""
    ) -> None:
        """Note an event in a queue or an exchange."""
        if trace.is_evicted:
            return
        self.noted(trace, kind, place.queue, position, detail)
        if place.exchange:
            trace.address(place.exchange, "")

    def left(self, place: "TracedPlace", word: str) -> None:
        """Note that the messages of a place are gone, such as by a purge; ``word`` becomes their state."""
        if self._traces:
            self.departures.note(place, word, self._journal.position, self._journal.turn_ms or self._journal.now_ms)

    def _locate(self, trace: MessageTrace, queue: str, message: "Message", position: int) -> None:
        """Remember where a message is, to find it when it is read back from the store."""
        if not trace.is_evicted:
            self._trace_by_place[queue, position] = trace
            if message.id:
                trace.content_id = message.id
                self._trace_by_content[message.id] = trace

    def delivered(
        self, trace: MessageTrace, queue: str, position: int | None, origin: "Origin", redelivered: bool
    ) -> None:
        """Note a delivery."""
        if (
            trace.rows is None
            and trace.deliver is None
            and trace.enqueue is not None
            and not redelivered
            and (position is trace.position or position == trace.position)  # it has none if it needs no acknowledgement
            and queue == trace.publication.only_queue
        ):
            journal = self._journal
            at_ms, event = journal.turn_ms or journal.now_ms, self._deliver
            if event is None or at_ms != event.at_ms or origin is not event.origin:
                event = self._deliver = SharedEvent(at_ms, "", origin)
            trace.deliver = event
        else:
            self.noted(trace, "deliver", queue, position, "", origin, redelivered)

    def accepted(self, trace: MessageTrace, queue: str, position: int, outcome: str) -> None:
        """Note that a delivery was acknowledged: the message has left the queue."""
        is_first = trace.rows is None and trace.settle is None and trace.deliver is not None
        if is_first and queue == trace.publication.only_queue:
            journal = self._journal
            at_ms, event = journal.turn_ms or journal.now_ms, self._settle
            if event is None or at_ms != event.at_ms or outcome != event.detail:
                event = self._settle = SharedEvent(at_ms, outcome, None)
            trace.settle = event
        else:
            self.noted(trace, "settle", queue, position, outcome)
        self._trace_by_place.pop((queue, position), None)

    def noted(
        self,
        trace: MessageTrace,
        kind: str,
        queue: str = "",
        position: int | None = None,
        detail: str = "",
        origin: "Origin | None" = None,
        redelivered: bool = False,
    ) -> None:
        """Note another event, unless the trace was dropped meanwhile."""
        if trace.is_evicted:
            return
        journal = self._journal
        trace.add((kind, journal.turn_ms or journal.now_ms, queue, position, detail, origin, redelivered))
        self.bytes += EVENT_BYTES
        if trace.rows is not None and len(trace.rows) > MOST_EVENTS:
            gone = trace.shorten()
            self.bytes -= EVENT_BYTES * len(gone)
            self._forget_places(gone)
        if self.bytes > self._most_bytes:
            self._evict()

    def dead_lettered(self, trace: MessageTrace, letter: "Message", reason: str) -> None:
        """Note that a dead letter is published."""
        if not trace.is_evicted:
            self.noted(trace, "dead-letter", "", None, reason)
            trace.address(letter.exchange, letter.routing_key)

    def own_trace(self, id: int) -> MessageTrace | None:
        """Return a trace of this message alone, because an event follows; ``None`` if it was dropped."""
        return self._traces.separated(id)

    def trace_of(self, message: "Message", queue: str, position: int | None) -> MessageTrace | None:
        """Return the trace of a message that was read back from the store."""
        if position is not None:
            trace = self._trace_by_place.get((queue, position))
            if trace is not None:
                return trace
        return self._trace_by_content.get(message.id) if message.id else None

    def trace_at(self, queue: str, position: int) -> MessageTrace | None:
        """Return the trace of the message at a place."""
        return self._trace_by_place.get((queue, position))

    def _evict(self) -> None:
        """Drop the oldest traces until there is room for some; the latest one stays."""
        traces = self._traces
        kept = self._most_messages - self._most_messages // _ROOM
        kept_bytes = self._most_bytes - self._most_bytes // _ROOM
        while (count := traces.count) > 1 and (self.bytes > kept_bytes or count > kept):
            trace = traces.drop_oldest(max(1, count - kept))
            dropped = count - traces.count
            self.bytes -= trace.size * dropped
            self.evicted += dropped
            if trace.rows is not None or trace.position is not None:
                self._forget(trace)

    def _forget(self, trace: MessageTrace) -> None:
        if trace.content_id:
            self._trace_by_content.pop(trace.content_id, None)
        if trace.position is not None and (trace.settle is None or trace.rows is not None):
            self._trace_by_place.pop((trace.publication.only_queue, trace.position), None)
        self._forget_places(trace.rows or ())

    def _forget_places(self, rows: "Iterable[Row]") -> None:
        for row in rows:
            if row[0] in ("enqueue", "delay") and row[3] is not None:
                self._trace_by_place.pop((row[2], row[3]), None)
