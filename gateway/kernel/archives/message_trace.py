"""The trace of one message: its events in order. What repeats from message to message is shared by their traces.

Messages come in runs: with one address and header, from one publisher, in one turn. Traces of a run share one
``Publication``, and events of one turn that are alike. If all messages of a run have the same events, and no position
in a queue, they share one trace: an object for each event, or for each message, would decide what tracing costs.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from gateway.kernel.compiling import mypyc_attr

if TYPE_CHECKING:
    from gateway.kernel.messages.message import Header, Message
    from gateway.kernel.messages.origin import Origin
    from gateway.kernel.queueing.queue_identity import QueueIdentity

#: Estimated memory of a trace that shares nothing, without its strings, and of an event, in bytes.
_TRACE_BYTES: Final = 500
EVENT_BYTES: Final = 200

#: The largest number of queues of a route that a trace names, and of other events that it has. Then it leaves out some
#: in the middle: a message to 100,000 queues has as many events, which take 0.2 s to show and 30 ms to drop.
MOST_ROUTES: Final = 250
MOST_EVENTS: Final = 1000
_LEFT_OUT_AT_ONCE: Final = 250
_FIRST: Final = 500


class TraceEvent(NamedTuple):
    """One event of a message; what does not apply is empty or ``None``.

    ``kind`` is ``publish``, ``refuse``, ``route``, ``delay``, ``due``, ``enqueue``, ``deliver``, ``settle``,
    ``requeue``, ``expire``, ``drop``, ``dead-letter`` or ``left-out``. ``at_ms`` is wall time. ``detail`` is the
    outcome of a settlement, the reason of a drop, the policy of the queue that accepted the message, the wall time at
    which a delayed message is due, in milliseconds, or the number and kind of events that were left out.
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


Row: TypeAlias = "tuple[str, int, str, int | None, str, Origin | None, bool]"


@mypyc_attr(acyclic=True)
class Publication:
    """The publish of one message, or of a run of them that differ in their bodies only, and the queues of their route.

    ``size`` is the estimated memory of a trace with it, in bytes; ``only_queue`` is "" if there is none or several.
    ``queues`` are the first ones; there are ``further_queues`` more.
    """

    __slots__ = (
        "at_ms",
        "body_size",
        "exchange",
        "further_queues",
        "header",
        "only_queue",
        "origin",
        "queues",
        "routing_key",
        "size",
    )

    def __init__(
        self, message: "Message", at_ms: int, queues: "tuple[QueueIdentity, ...]", origin: "Origin | None"
    ) -> None:
        self.exchange = message.exchange
        self.routing_key = message.routing_key
        self.header: Header = message.header
        self.body_size = len(message.body)
        self.at_ms = at_ms
        few = queues if len(queues) <= MOST_ROUTES else queues[:MOST_ROUTES]
        self.queues = tuple([queue.name for queue in few if queue.name])  # queues of exchanges have no name
        self.further_queues = len(queues) - len(few)
        self.only_queue = self.queues[0] if len(self.queues) == 1 else ""
        self.origin = origin
        self.size = _TRACE_BYTES + len(self.routing_key) + len(self.header.raw) + EVENT_BYTES * len(self.queues)


@mypyc_attr(acyclic=True)
class SharedEvent:
    """The time of an event, its detail and its origin, for all messages that this happens to in one turn."""

    __slots__ = ("at_ms", "detail", "origin")

    def __init__(self, at_ms: int, detail: str, origin: "Origin | None") -> None:
        self.at_ms = at_ms
        self.detail = detail
        self.origin = origin


@mypyc_attr(acyclic=True)  # ten thousand of them live at once: the garbage collector need not visit each
class MessageTrace:
    """The events of one message, in order, with its number ``id``; or of ``count`` messages with consecutive numbers.

    A trace of several messages has their last number; no event follows for any of them, unless it is separated.
    Most messages have one queue, and are enqueued, delivered and acknowledged once, in this order, at one ``position``
    or none: these events are ``enqueue``, ``deliver`` and ``settle``. All other and later events are ``rows``, of which
    ``left_out`` in the middle are gone.
    """

    __slots__ = (
        "_letters",
        "content_id",
        "count",
        "deliver",
        "enqueue",
        "id",
        "is_evicted",
        "left_out",
        "position",
        "publication",
        "rows",
        "settle",
    )

    def __init__(self, id: int, publication: Publication) -> None:
        self.id = id
        self.count = 1
        self.publication = publication
        self.enqueue: SharedEvent | None = None
        self.deliver: SharedEvent | None = None
        self.settle: SharedEvent | None = None
        self.position: int | None = None
        self.content_id = 0
        self.is_evicted = False
        self.rows: list[Row] | None = None
        self.left_out = 0
        self._letters: dict[int, tuple[str, str]] | None = None  # exchange and routing key, by row

    @property
    def exchange(self) -> str:
        """The exchange to which the message was published."""
        return self.publication.exchange

    @property
    def routing_key(self) -> str:
        """The routing key of the publish."""
        return self.publication.routing_key

    @property
    def header(self) -> "Header":
        """The header of the publisher, to search for its message id."""
        return self.publication.header

    @property
    def body_size(self) -> int:
        """The size of the body in bytes."""
        return self.publication.body_size

    @property
    def size(self) -> int:
        """The estimated memory of the trace of one message, in bytes."""
        rows = self.rows
        return self.publication.size if rows is None else self.publication.size + EVENT_BYTES * len(rows)

    def of_message(self, id: int) -> "MessageTrace":
        """Return the trace of one of the messages: itself, or a copy."""
        if self.count == 1:
            return self
        return self.part(id, 1)

    def part(self, last: int, count: int) -> "MessageTrace":
        """Return a copy for some of the messages: ``count`` up to the number ``last``."""
        part = MessageTrace(last, self.publication)
        part.count = count
        part.enqueue, part.deliver = self.enqueue, self.deliver
        return part

    @property
    def events(self) -> list[TraceEvent]:
        """The events in order."""
        published, letters = self.publication, self._letters or {}
        at_ms, origin = published.at_ms, published.origin
        publish = TraceEvent("publish", at_ms, "", None, "", origin, False, published.exchange, published.routing_key)
        routes = [TraceEvent("route", at_ms, queue) for queue in published.queues]
        if published.further_queues:
            routes.append(TraceEvent("left-out", at_ms, detail=f"{published.further_queues} routes"))
        rows = [TraceEvent(*row, *letters.get(number, ())) for number, row in enumerate(self.rows or ())]
        if self.left_out:
            rows.insert(_FIRST, TraceEvent("left-out", rows[_FIRST].at_ms, detail=f"{self.left_out} events"))
        return [publish, *routes, *self._first_events(), *rows]

    def add(self, row: "Row") -> None:
        """Note another event."""
        if self.rows is None:
            self.rows = []
        self.rows.append(row)

    def shorten(self) -> "list[Row]":
        """Leave out some events in the middle if there are too many; return them."""
        rows = self.rows
        if rows is None or len(rows) <= MOST_EVENTS:
            return []
        end = _FIRST + _LEFT_OUT_AT_ONCE
        gone = rows[_FIRST:end]
        del rows[_FIRST:end]
        self.left_out += len(gone)
        if self._letters is not None:
            self._letters = {
                (number if number < _FIRST else number - len(gone)): address
                for number, address in self._letters.items()
                if not _FIRST <= number < end
            }
        return gone

    def address(self, exchange: str, routing_key: str) -> None:
        """Note the exchange that the latest event is about, with the routing key of a dead letter."""
        if self._letters is None:
            self._letters = {}
        self._letters[len(self.rows or ()) - 1] = exchange, routing_key

    def _first_events(self) -> Iterator[TraceEvent]:
        """Return the events that may be shared."""
        queue = self.publication.only_queue
        for kind, event in (("enqueue", self.enqueue), ("deliver", self.deliver), ("settle", self.settle)):
            if event is not None:
                yield TraceEvent(kind, event.at_ms, queue, self.position, event.detail, event.origin)
