"""The traces of messages: the latest events of one virtual host in memory, by message, in order.

The oldest traces are dropped first: the store has a limit of messages and one of bytes.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gateway.kernel.journal.journal import Journal
    from gateway.kernel.messages.message import Header, Message
    from gateway.kernel.messages.origin import Origin
    from gateway.kernel.queueing.declared import QueueIdentity
    from gateway.kernel.queueing.queue_like import QueueLike

#: Estimated memory of a trace without its strings, and of an event, in bytes.
_TRACE_BYTES: Final = 700
_EVENT_BYTES: Final = 200


@dataclass(frozen=True, slots=True)
class TraceRules:
    """The fraction of messages that is traced, from 0 (off) to 1, and the limits of each virtual host's store."""

    sample: float = 0.0
    most_messages: int = 10_000
    most_bytes: int = 32 * 2**20


class TraceEvent:
    """One event of a message; what does not apply is empty or ``None``.

    ``kind`` is ``publish``, ``route``, ``enqueue``, ``deliver``, ``settle``, ``requeue``, ``expire``, ``drop`` or
    ``dead-letter``. ``at_ms`` is wall time. ``detail`` is the outcome of a settlement, the reason of a drop, or the
    policy of the queue that accepted the message.
    """

    __slots__ = ("at_ms", "detail", "exchange", "kind", "origin", "position", "queue", "redelivered", "routing_key")

    def __init__(
        self,
        kind: str,
        at_ms: int,
        queue: str = "",
        position: int | None = None,
        detail: str = "",
        origin: "Origin | None" = None,
        redelivered: bool = False,
        exchange: str = "",
        routing_key: str = "",
    ) -> None:
        self.kind = kind
        self.at_ms = at_ms
        self.queue = queue
        self.position = position
        self.detail = detail
        self.origin = origin
        self.redelivered = redelivered
        self.exchange = exchange
        self.routing_key = routing_key


class MessageTrace:
    """The events of one message, in order. ``header`` is that of its publisher, to search for its message id."""

    __slots__ = ("body_size", "content_id", "events", "exchange", "header", "id", "routing_key", "size")

    def __init__(self, id: int, message: "Message") -> None:
        self.id = id
        self.exchange = message.exchange
        self.routing_key = message.routing_key
        self.header: Header = message.header
        self.body_size = len(message.body)
        self.content_id = 0
        self.events: list[TraceEvent] = []
        self.size = _TRACE_BYTES + len(message.routing_key) + len(message.header.raw)


class MessageTraces:
    """Owns the traces of one virtual host.

    A message that was paged out has lost its number; it is found by its place in the queue, or as a stored content.
    ``evicted`` counts traces that were dropped for later ones.
    """

    def __init__(self, journal: "Journal", rules: TraceRules) -> None:
        self.rules = rules
        self.sample = rules.sample
        self.bytes = 0
        self.evicted = 0
        self._journal = journal
        self._trace_by_id: dict[int, MessageTrace] = {}
        self._id_by_place: dict[tuple[str, int], int] = {}
        self._id_by_content: dict[int, int] = {}
        self._share = 0.0

    def __len__(self) -> int:
        return len(self._trace_by_id)

    def __iter__(self) -> Iterator[MessageTrace]:
        """Return the traces, the latest first."""
        return iter(list(reversed(self._trace_by_id.values())))

    @property
    def is_on(self) -> bool:
        """Whether messages are traced."""
        return self.sample > 0

    def get(self, id: int) -> MessageTrace | None:
        """Return the trace of this number."""
        return self._trace_by_id.get(id)

    def clear(self) -> None:
        """Drop all traces."""
        self._trace_by_id.clear()
        self._id_by_place.clear()
        self._id_by_content.clear()
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
        self, id: int, message: "Message", queues: "Sequence[QueueIdentity]", origin: "Origin | None"
    ) -> None:
        """Begin a trace with the publish and the queues that the message is routed to."""
        trace = self._trace_by_id[id] = MessageTrace(id, message)
        at_ms = self._journal.turn_ms or self._journal.now_ms
        events = trace.events
        events.append(TraceEvent("publish", at_ms, "", None, "", origin, False, message.exchange, message.routing_key))
        for queue in queues:
            events.append(TraceEvent("route", at_ms, queue.name))
        if not queues:
            events.append(TraceEvent("drop", at_ms, "", None, "unroutable"))
        trace.size += _EVENT_BYTES * len(events)
        self.bytes += trace.size
        if self.bytes > self.rules.most_bytes or len(self._trace_by_id) > self.rules.most_messages:
            self._evict()

    def enqueued(self, id: int, queue: "QueueLike", message: "Message", position: int | None) -> None:
        """Note that a queue accepted a message, and the policy of the queue."""
        policy = queue.settings.policy
        name = queue.name
        trace = self._add(id, "enqueue", name, position, "" if policy is None else f"policy {policy.name}")
        if trace is not None and position is not None:
            self._id_by_place[name, position] = id
            if message.id:
                trace.content_id = message.id
                self._id_by_content[message.id] = id

    def noted(
        self,
        id: int,
        kind: str,
        queue: str,
        position: int | None = None,
        detail: str = "",
        origin: "Origin | None" = None,
        redelivered: bool = False,
    ) -> None:
        """Note another event in a queue."""
        self._add(id, kind, queue, position, detail, origin, redelivered)

    def dead_lettered(self, id: int, letter: "Message", reason: str) -> None:
        """Note that a dead letter is published."""
        trace = self._add(id, "dead-letter", "", None, reason)
        if trace is not None:
            event = trace.events[-1]
            event.exchange, event.routing_key = letter.exchange, letter.routing_key

    def id_of(self, message: "Message", queue: str = "", position: int | None = None) -> int | None:
        """Return the number of a message that was read back from the store."""
        if position is not None:
            id = self._id_by_place.get((queue, position))
            if id is not None:
                return id
        return self._id_by_content.get(message.id) if message.id else None

    def _add(
        self,
        id: int,
        kind: str,
        queue: str = "",
        position: int | None = None,
        detail: str = "",
        origin: "Origin | None" = None,
        redelivered: bool = False,
    ) -> MessageTrace | None:
        trace = self._trace_by_id.get(id)
        if trace is None:
            return None  # evicted
        at_ms = self._journal.turn_ms or self._journal.now_ms
        trace.events.append(TraceEvent(kind, at_ms, queue, position, detail, origin, redelivered))
        trace.size += _EVENT_BYTES
        self.bytes += _EVENT_BYTES
        return trace

    def _evict(self) -> None:
        """Drop the oldest traces, up to the limits; the latest one stays."""
        rules, traces = self.rules, self._trace_by_id
        while len(traces) > 1 and (self.bytes > rules.most_bytes or len(traces) > rules.most_messages):
            trace = traces.pop(next(iter(traces)))
            self.bytes -= trace.size
            self.evicted += 1
            self._id_by_content.pop(trace.content_id, None)
            for event in trace.events:
                if event.kind == "enqueue" and event.position is not None:
                    self._id_by_place.pop((event.queue, event.position), None)


def whereabouts(trace: MessageTrace, has_queue: Callable[[str], bool]) -> list[tuple[str, str]]:
    """Return where a message is now: each queue that it reached, with its state there.

    States are ``ready``, ``unsettled``, ``consumed``, ``delivered`` (without acknowledgement), ``rejected``, the reason
    of a drop, and ``queue deleted``. Without any queue it is the reason of the drop, under an empty name.
    """
    states: dict[str, str] = {}
    for event in trace.events:
        match event.kind:
            case "enqueue" | "requeue":
                states[event.queue] = "ready"
            case "deliver":
                states[event.queue] = "delivered" if event.position is None else "unsettled"
            case "settle":
                states[event.queue] = "consumed" if event.detail == "accepted" else event.detail
            case "expire" | "drop":
                states[event.queue] = event.detail
    waiting = ("ready", "unsettled")
    return [(name, "queue deleted" if s in waiting and not has_queue(name) else s) for name, s in states.items()]
