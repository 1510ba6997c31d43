"""Reads of streams at a node that follows: from its own copy, if the leader vouches for the range, else by the leader.

The leader is asked within each read, once there is a slot for it: so it checks the login and the permissions, and
nothing is returned that was not confirmed, or was removed, before that moment. What the copy cannot answer is asked
of the leader, as are all other requests of the connection.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol

from twisted.internet.defer import DeferredSemaphore
from twisted.internet.task import Cooperator
from twisted.python.failure import Failure

from gateway.kernel.clock import Clock
from gateway.management.cells.cell_answer import CellAnswer, CellFlow
from gateway.management.http.cross_origin import SECURITY_HEADERS
from gateway.management.http.downloads import Download
from gateway.management.http.errors import HttpError, busy
from gateway.management.http.response_stream import ResponseStream
from gateway.management.pipeline.copied_stream import CopiedStream, CopyStore
from gateway.management.pipeline.reading import ReadRange, SplitReader
from gateway.management.pipeline.vouched_range import (
    OFFERED_COPIES,
    VOUCHED,
    LogPlace,
    VouchedRange,
    decode_vouched,
    encode_offer,
)
from gateway.management.views.json import encode
from gateway.management.web.request import Headers, Request

#: The header that names the node whose copy has answered.
READ_AT: Final = "X-Read-At"

#: How long a range counts that a leader vouches for, in seconds. A file that is encoded for longer is not read.
FRESH_S: Final = 5.0

#: The longest answer with a range, in bytes.
_LONGEST: Final = 4096

#: Headers of one connection, and those that the other side sets.
_OF_CONNECTION: Final = frozenset(
    {"connection", "keep-alive", "transfer-encoding", "content-length", "expect", "upgrade", "te", OFFERED_COPIES}
)
_OF_ANSWER: Final = frozenset({b"connection", b"keep-alive", b"transfer-encoding", b"server", b"date"})


class ReadableCopies(Protocol):
    """The copies of this node, by the cells of the cluster."""

    def epochs(self) -> Mapping[int, int]:
        """Return the epoch of each copy that can be read now, by its cell."""
        ...

    def store(self, cell: int) -> CopyStore | None:
        """Return the store of a cell's copy; ``None`` without one. Another copy has another store."""
        ...


class LeaderLine(Protocol):
    """The way from one client to its leader: one request at a time."""

    #: Whether it is closed: the leader is lost, or has closed it.
    is_lost: bool

    def ask(
        self, method: str, target: str, headers: Sequence[tuple[str, str]], content: bytes, answer: CellAnswer
    ) -> CellFlow:
        """Send a request. Its answer comes in a later turn, and fails then if the line is lost."""
        ...


@dataclass(slots=True)
class ReadCounts:
    """The reads that a node has answered from its copies, and the rows in the answers."""

    reads: int = 0
    rows: int = 0


class CopyReads:
    """Answers the requests of clients that read streams at the port of a ``node`` that follows.

    ``line_of`` returns the way of a request to its leader. ``reader_of`` returns what reads a copy in an epoch. Up to
    ``max_reads`` reads are answered at a time. A body has up to ``largest_body`` bytes.
    """

    def __init__(
        self,
        node: str,
        copies: ReadableCopies,
        line_of: Callable[[Request], LeaderLine],
        reader_of: Callable[[int], SplitReader[CopiedStream]],
        max_reads: int,
        largest_body: int,
        clock: Clock,
        slices: Cooperator,
    ) -> None:
        self.counts = ReadCounts()
        self.node = node
        self.copies = copies
        self.slots = DeferredSemaphore(max_reads)
        self.clock = clock
        self.slices = slices
        self._line_of = line_of
        self._reader_of = reader_of
        self._largest_body = largest_body
        self._readers: dict[int, tuple[int, CopyStore, SplitReader[CopiedStream]]] = {}

    def begin(self, request: Request) -> None:
        """Receive the body of a request, and answer it."""
        try:
            request.take_body(self._largest_body, partial(self._answer, request))
        except HttpError as error:
            refuse(request, error)

    def _answer(self, request: Request) -> None:
        line = self._line_of(request)
        if self.copies.epochs() and _is_read(request) and not line.is_lost:
            CopyRead(self, request, line).begin()
        else:
            pass_on(request, line)

    def place_of(self, cell: int) -> LogPlace | None:
        """Return the place at which a copy has the data now."""
        epoch = self.copies.epochs().get(cell)
        return None if epoch is None else LogPlace(cell, epoch)

    def reader(self, place: LogPlace, store: CopyStore) -> SplitReader[CopiedStream]:
        """Return what reads a copy in an epoch. No other one keeps its files open, or their indexes."""
        found = self._readers.get(place.cell)
        if found is None or found[0] != place.epoch or found[1] is not store:
            store.close_segment_files()
            found = self._readers[place.cell] = place.epoch, store, self._reader_of(place.epoch)
        return found[2]


class CopyRead:
    """One read: waits for a slot, asks the leader, and reads the copy if that vouches for a range."""

    def __init__(self, reads: CopyReads, request: Request, line: LeaderLine) -> None:
        self._reads = reads
        self._request = request
        self._line = line
        self._passed = PassedAnswer(request)
        self._has_slot = False
        self._is_vouched = False
        self._content = b""
        self._asked_s = 0.0

    def begin(self) -> None:
        """Ask the leader once there is a slot."""
        waiting = self._reads.slots.acquire()
        self._request.when_lost(self._release)
        self._request.when_lost(waiting.cancel)
        waiting.addCallbacks(self._ask, lambda failure: None)
        waiting.addErrback(self._could_not_ask)

    def _could_not_ask(self, failure: Any) -> None:  # Any: Twisted's failures have no type
        self._release()
        refuse(self._request, failure.value)

    def _ask(self, slot: object) -> None:
        self._has_slot = True
        if self._request.is_lost:
            self._release()
            return
        self._asked_s = self._reads.clock.monotonic_s()
        offered = (OFFERED_COPIES, encode_offer(self._reads.copies.epochs()))
        self._passed.flow_through(ask(self._line, self._request, self, [offered]))

    def _release(self) -> None:
        if self._has_slot:
            self._has_slot = False
            self._reads.slots.release()

    # The answer of the leader

    def begun(self, status: int, headers: Sequence[tuple[bytes, bytes]]) -> None:
        """Note whether the leader vouches for a range; else pass its answer on."""
        self._is_vouched = (b"content-type", VOUCHED.encode()) in [(name.lower(), value) for name, value in headers]
        if not self._is_vouched:
            self._release()
            self._passed.begun(status, headers)

    def piece(self, data: bytes) -> None:
        """Keep a piece of the range, or pass a piece of the messages on."""
        if not self._is_vouched:
            self._passed.piece(data)
        elif len(self._content) <= _LONGEST:
            self._content += data

    def ended(self) -> None:
        """Read the range."""
        if not self._is_vouched:
            self._passed.ended()
        elif not self._request.is_lost:
            self._read()

    def failed(self, reason: str) -> None:
        """Refuse the request: another node may know another leader."""
        self._release()
        self._passed.failed(reason)

    # The copy

    def _read(self) -> None:
        try:
            vouched = decode_vouched(self._content)
            begin, end = (int(self._request.query[name]) for name in ("from", "to"))
        except (ValueError, KeyError):  # a leader of another version
            self._leave_to_leader()
            return
        store = self._reads.copies.store(vouched.place.cell)
        if store is None or self._reads.place_of(vouched.place.cell) != vouched.place:
            self._leave_to_leader()
            return
        found = self._reads.reader(vouched.place, store).read(ReadRange(self._stream(vouched, store), begin, end))
        self._request.when_lost(found.cancel)
        fresh_s = self._asked_s + FRESH_S - self._reads.clock.monotonic_s()
        late = self._reads.clock.call_later(max(fresh_s, 0.0), found.cancel)

        def in_time(result: Download | Failure) -> Download | Failure:
            late.cancel()
            return result

        found.addBoth(in_time).addCallbacks(self._send, self._not_found)

    def _stream(self, vouched: VouchedRange, store: CopyStore) -> CopiedStream:
        def place_now() -> LogPlace | None:
            cell = vouched.place.cell
            return self._reads.place_of(cell) if self._reads.copies.store(cell) is store else None

        return CopiedStream(vouched, store, place_now)

    def _not_found(self, failure: object) -> None:
        """Let the leader answer: the copy lacks the messages, or is another one now, or cannot be encoded."""
        if self._request.is_lost:
            self._release()
        else:
            self._leave_to_leader()

    def _leave_to_leader(self) -> None:
        self._release()
        pass_on(self._request, self._line)

    def _send(self, download: Download) -> None:
        is_late = self._reads.clock.monotonic_s() - self._asked_s > FRESH_S
        if self._request.is_lost or is_late:
            download.close()
            self._not_found("the range does not count any more")
            return
        counts, sent = self._reads.counts, download.headers
        counts.reads += 1
        counts.rows += int(sent["X-Next-Offset"]) - int(sent["X-First-Offset"])
        own = {**sent, READ_AT: self._reads.node}
        headers = [(name.encode(), value.encode("latin-1", "replace")) for name, value in own.items()]
        ResponseStream(
            self._request,
            download.pieces,
            headers=[*common_headers(), *headers],
            size=download.size,
            on_step=lambda: None,
            on_error=partial(refuse, self._request),
            close=download.closing(self._release).close,
        ).begin(self._reads.slices)


class PassedAnswer:
    """Passes the answer of the leader to the client of a request."""

    def __init__(self, request: Request) -> None:
        self._request = request

    def flow_through(self, flow: CellFlow) -> None:
        """Take what stops and ends the answer, because the client reads slowly, or is gone."""
        self._request.flow = flow
        self._request.when_lost(flow.cancel)

    def begun(self, status: int, headers: Sequence[tuple[bytes, bytes]]) -> None:
        """Send the head."""
        kept = [(name, value) for name, value in headers if name.lower() not in _OF_ANSWER]
        if (b"connection", b"close") in [(name.lower(), value.lower()) for name, value in headers]:
            kept.append((b"Connection", b"close"))  # without the leader the next request has no answer
        self._request.begin_answer(status, kept)

    def piece(self, data: bytes) -> None:
        """Send a piece of the body."""
        self._request.write(data)

    def ended(self) -> None:
        """End the answer."""
        self._request.end_answer()

    def failed(self, reason: str) -> None:
        """Refuse the request, or end the connection in the middle of the answer."""
        if self._request.is_answered:
            self._request.abort()
        else:
            refuse(self._request, busy(f"the leader of the cluster does not answer: {reason}"))


def pass_on(request: Request, line: LeaderLine) -> None:
    """Let the leader answer a request."""
    if request.is_lost:
        return
    if line.is_lost:
        refuse(request, busy("the leader of the cluster is lost; the connection to it has ended"))
        return
    answer = PassedAnswer(request)
    answer.flow_through(ask(line, request, answer))


def ask(line: LeaderLine, request: Request, answer: CellAnswer, further: Sequence[tuple[str, str]] = ()) -> CellFlow:
    """Send a client's request to its leader, with ``further`` headers."""
    headers = [(name, value) for name, value in request.headers.items() if name not in _OF_CONNECTION]
    if "host" not in request.headers:  # HTTP/1.0
        headers.append(("Host", "localhost"))
    return line.ask(request.method, request.target, [*headers, *further], request.content, answer)


def common_headers() -> Headers:
    """Return the headers of every response, which forbid caching."""
    return [(b"Cache-Control", b"no-cache, no-store"), *SECURITY_HEADERS]


def refuse(request: Request, error: Exception) -> None:
    """Send an error, and close the connection after it: the next one may find another leader."""
    if not isinstance(error, HttpError):
        error = HttpError(500, "internal_error", f"the copy cannot be read: {error}")
    if request.is_answered or request.is_lost:
        return
    further = [(name.encode(), value.encode()) for name, value in error.headers.items()]
    headers = [*common_headers(), *further, (b"Content-Type", b"application/json"), (b"Connection", b"close")]
    request.answer(error.status, headers, encode(error.fields))


def _is_read(request: Request) -> bool:
    """Whether a request reads messages, and its answer needs no headers for a web page."""
    return request.method == "GET" and is_path_of_read(request.path) and "origin" not in request.headers


def is_path_of_read(path: str) -> bool:
    """Whether a path is that of a read: ``/api/pipeline/VHOST/read``."""
    parts = path.split("/")
    return len(parts) == 5 and parts[:3] == ["", "api", "pipeline"] and parts[4] == "read"
