"""The traces of messages: the latest events of one virtual host in memory, by message, in order.

The oldest traces are dropped first: the store has a limit of messages and one of bytes.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from gateway.kernel.archives.departures import Departures
from gateway.kernel.compiling import mypyc_attr

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gateway.kernel.archives.departures import TracedPlace
    from gateway.kernel.journal.journal import Journal
    from gateway.kernel.messages.message import Header, Message
    from gateway.kernel.messages.origin import Origin
    from gateway.kernel.queueing.declared import QueueIdentity
    from gateway.kernel.queueing.queue_like import QueueLike

#: Estimated memory of a trace without its strings, and of an event, in bytes.
_TRACE_BYTES: Final = 500
_EVENT_BYTES: Final = 200


@dataclass(frozen=True, slots=True)
class TraceRules:
    """The fraction of messages that is traced, from 0 (off) to 1, and the limits of each virtual host's store."""

    sample: float = 0.0
    most_messages: int = 10_000
    most_bytes: int = 32 * 2**20


class TraceEvent(NamedTuple):
    """One event of a message; what does not apply is empty or ``None``.

    ``kind`` is ``publish``, ``refuse``, ``route``, ``delay``, ``due``, ``enqueue``, ``deliver``, ``settle``,
    ``requeue``, ``expire``, ``drop`` or ``dead-letter``. ``at_ms`` is wall time. ``detail`` is the outcome of a
    settlement, the reason of a drop, the policy of the queue that accepted the message, or the wall time at which a
    delayed message is due, in milliseconds.
    """

    kind: str
    at_ms: int
    queue: str = ""
    position: int | None = None
    detail: str = ""
    origin: "Origin | None" = None
    redelivered: bool = False
    exchange: str = ""
    routing_key: str = ""


#: The stages of a message up to its first acknowledgement, in order; ``_NOT_ALONE`` has no queue or several.
_NOT_ALONE: Final = 0
_ROUTED: Final = 1
_ENQUEUED: Final = 2
_DELIVERED: Final = 3
_ACCEPTED: Final = 4

_Row: TypeAlias = "tuple[str, int, str, int | None, str, Origin | None, bool]"


@mypyc_attr(acyclic=True)  # ten thousand of them live at once: the garbage collector need not visit each
class MessageTrace:
    """The events of one message, in order. ``header`` is that of its publisher, to search for its message id.

    Most messages have one queue, and are enqueued, delivered and settled once: these events are fields of the trace, as
    far as ``stage`` tells, because an object for each decides what tracing costs. All later events are ``rows``.
    """

    __slots__ = (
        "_at_ms",
        "_delivered_ms",
        "_enqueued_ms",
        "_letters",
        "_origin",
        "_outcome",
        "_policy",
        "_receiver",
        "_settled_ms",
        "body_size",
        "content_id",
        "exchange",
        "header",
        "id",
        "is_evicted",
        "position",
        "queues",
        "routing_key",
        "rows",
        "size",
        "stage",
    )

    def __init__(
        self, id: int, message: "Message", at_ms: int, queues: tuple[str, ...], origin: "Origin | None"
    ) -> None:
        self.id = id
        self.exchange = message.exchange
        self.routing_key = message.routing_key
        self.header: Header = message.header
        self.body_size = len(message.body)
        self.content_id = 0
        self.is_evicted = False
        self.queues = queues
        self.rows: list[_Row] | None = None
        self.size = _TRACE_BYTES + len(message.routing_key) + len(message.header.raw) + _EVENT_BYTES * len(queues)
        self.stage = _ROUTED if len(queues) == 1 else _NOT_ALONE
        self.position: int | None = None
        self._at_ms = at_ms
        self._origin = origin
        self._letters: dict[int, tuple[str, str]] | None = None  # exchange and routing key, by row
        self._enqueued_ms = 0
        self._policy = ""
        self._delivered_ms = 0
        self._receiver: Origin | None = None
        self._settled_ms = 0
        self._outcome = ""

    @property
    def events(self) -> list[TraceEvent]:
        """The events in order."""
        at_ms, letters = self._at_ms, self._letters or {}
        publish = TraceEvent("publish", at_ms, "", None, "", self._origin, False, self.exchange, self.routing_key)
        routes = [TraceEvent("route", at_ms, queue) for queue in self.queues]
        rows = [TraceEvent(*row, *letters.get(number, ())) for number, row in enumerate(self.rows or ())]
        return [publish, *routes, *self._first_events(), *rows]

    def enqueued(self, at_ms: int, position: int | None, policy: str) -> None:
        """Note that the only queue accepted the message."""
        self.stage, self._enqueued_ms, self.position, self._policy = _ENQUEUED, at_ms, position, policy

    def delivered(self, at_ms: int, receiver: "Origin") -> None:
        """Note the first delivery."""
        self.stage, self._delivered_ms, self._receiver = _DELIVERED, at_ms, receiver

    def accepted(self, at_ms: int, outcome: str) -> None:
        """Note that the first delivery was acknowledged."""
        self.stage, self._settled_ms, self._outcome = _ACCEPTED, at_ms, outcome

    def add(self, row: "_Row") -> None:
        """Note another event."""
        if self.rows is None:
            self.rows = []
        self.rows.append(row)

    def address(self, exchange: str, routing_key: str) -> None:
        """Note the exchange that the latest event is about, with the routing key of a dead letter."""
        if self._letters is None:
            self._letters = {}
        self._letters[len(self.rows or ()) - 1] = exchange, routing_key

    def _first_events(self) -> Iterator[TraceEvent]:
        """Return the events that are fields."""
        if self.stage < _ENQUEUED:
            return
        queue = self.queues[0]
        yield TraceEvent("enqueue", self._enqueued_ms, queue, self.position, self._policy)
        if self.stage >= _DELIVERED:
            yield TraceEvent("deliver", self._delivered_ms, queue, self.position, "", self._receiver)
        if self.stage >= _ACCEPTED:
            yield TraceEvent("settle", self._settled_ms, queue, self.position, self._outcome)


class MessageTraces:
    """Owns the traces of one virtual host.

    A message that was paged out has lost its number; it is found by its place in the queue, or as a stored content.
    ``evicted`` counts traces that were dropped for later ones, ``departures`` are the purges and deletions.
    """

    def __init__(self, journal: "Journal", rules: TraceRules) -> None:
        self.rules = rules
        self.sample = rules.sample
        self.bytes = 0
        self.evicted = 0
        self._journal = journal
        self._traces: deque[MessageTrace] = deque()  # in order of their numbers
        self._trace_by_place: dict[tuple[str, int], MessageTrace] = {}
        self._trace_by_content: dict[int, MessageTrace] = {}
        self._share = 0.0
        self.departures = Departures()

    def __len__(self) -> int:
        return len(self._traces)

    def __iter__(self) -> Iterator[MessageTrace]:
        """Return the traces, the latest first."""
        return iter(list(reversed(self._traces)))

    @property
    def is_on(self) -> bool:
        """Whether messages are traced."""
        return self.sample > 0

    def get(self, id: int) -> MessageTrace | None:
        """Return the trace of this number."""
        traces = self._traces
        index = bisect_left(traces, id, key=_number)
        return traces[index] if index < len(traces) and traces[index].id == id else None

    def clear(self) -> None:
        """Drop all traces."""
        for trace in self._traces:
            trace.is_evicted = True
        self._traces.clear()
        self._trace_by_place.clear()
        self._trace_by_content.clear()
        self.departures = Departures()
        self.bytes = 0

    def chooses(self) -> bool:
        """Return whether the next message is traced: one in every ``1 / sample``, evenly."""
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
        queues: "Sequence[QueueIdentity]",
        origin: "Origin | None",
        refusal: str | None = None,
    ) -> MessageTrace:
        """Begin a trace with the publish and the queues that the message is routed to, or why it is refused."""
        at_ms = self._journal.turn_ms or self._journal.now_ms
        if len(queues) == 1 and queues[0].name:
            names: tuple[str, ...] = (queues[0].name,)
        else:
            names = tuple([queue.name for queue in queues if queue.name])  # queues of exchanges have no name
        trace = MessageTrace(id, message, at_ms, names, origin)
        self._traces.append(trace)
        self.bytes += trace.size
        if refusal is not None:
            self.noted(trace, "refuse", "", None, refusal)
        elif not queues:
            self.noted(trace, "drop", "", None, "unroutable")
        if self.bytes > self.rules.most_bytes or len(self._traces) > self.rules.most_messages:
            self._evict()
        return trace

    def enqueued(self, trace: MessageTrace, queue: "QueueLike", message: "Message", position: int | None) -> None:
        """Note that a queue accepted a message, and the policy of the queue."""
        policy, name = queue.settings.policy, queue.name
        detail = "" if policy is None else f"policy {policy.name}"
        if trace.stage == _ROUTED and trace.rows is None and trace.queues[0] == name:
            journal = self._journal
            trace.enqueued(journal.turn_ms or journal.now_ms, position, detail)
        else:
            self.noted(trace, "enqueue", name, position, detail)
        self._locate(trace, name, message, position)

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

    def _locate(self, trace: MessageTrace, queue: str, message: "Message", position: int | None) -> None:
        """Remember where a message is, to find it when it is read back from the store."""
        if position is not None and not trace.is_evicted:
            self._trace_by_place[queue, position] = trace
            if message.id:
                trace.content_id = message.id
                self._trace_by_content[message.id] = trace

    def delivered(
        self, trace: MessageTrace, queue: str, position: int | None, origin: "Origin", redelivered: bool
    ) -> None:
        """Note a delivery."""
        is_first = trace.stage == _ENQUEUED and trace.rows is None and not redelivered and trace.queues[0] == queue
        if is_first and position == trace.position:  # it has none if it needs no acknowledgement
            journal = self._journal
            trace.delivered(journal.turn_ms or journal.now_ms, origin)
        else:
            self.noted(trace, "deliver", queue, position, "", origin, redelivered)

    def accepted(self, trace: MessageTrace, queue: str, position: int, outcome: str) -> None:
        """Note that a delivery was acknowledged: the message has left the queue."""
        if trace.stage == _DELIVERED and trace.rows is None and trace.queues[0] == queue:
            journal = self._journal
            trace.accepted(journal.turn_ms or journal.now_ms, outcome)
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
        trace.size += _EVENT_BYTES
        self.bytes += _EVENT_BYTES
        if self.bytes > self.rules.most_bytes:
            self._evict()

    def dead_lettered(self, trace: MessageTrace, letter: "Message", reason: str) -> None:
        """Note that a dead letter is published."""
        if not trace.is_evicted:
            self.noted(trace, "dead-letter", "", None, reason)
            trace.address(letter.exchange, letter.routing_key)

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
        """Drop the oldest traces, up to the limits; the latest one stays."""
        rules, traces = self.rules, self._traces
        while len(traces) > 1 and (self.bytes > rules.most_bytes or len(traces) > rules.most_messages):
            trace = traces.popleft()
            self.bytes -= trace.size
            self.evicted += 1
            self._forget(trace)

    def _forget(self, trace: MessageTrace) -> None:
        trace.is_evicted = True
        if trace.content_id:
            self._trace_by_content.pop(trace.content_id, None)
        if trace.position is not None and (trace.stage != _ACCEPTED or trace.rows is not None):
            self._trace_by_place.pop((trace.queues[0], trace.position), None)
        for row in trace.rows or ():
            if row[0] in ("enqueue", "delay") and row[3] is not None:
                self._trace_by_place.pop((row[2], row[3]), None)


def _number(trace: MessageTrace) -> int:
    return trace.id
