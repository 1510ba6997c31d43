"""A node that follows, without sockets: its reads of streams, a copy that a test lets lag, and a leader's API."""

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from twisted.internet.testing import StringTransport

from gateway.kernel.journal.changes import StreamSegment
from gateway.kernel.messages.chunks import chunk_heads
from gateway.management.cells.cell_answer import NO_FLOW, CellAnswer, CellFlow
from gateway.management.pipeline.copied_stream import CopiedStream
from gateway.management.pipeline.copy_reads import CopyReads
from gateway.management.pipeline.reading import SplitReader
from gateway.management.pipeline.vouched_range import LogPlace
from gateway.management.web.factory import HttpFactory
from gateway.management.web.limits import HttpLimits
from gateway.testing.clock import FakeClock
from tests.management.console import Answer, Console, is_complete, parsed
from tests.management.inline_worker import InlineWorker

#: An offset beyond all others.
ALL = 1 << 40


class LaggingCopy:
    """The leader's store, of which chunks that begin at ``end`` or later are not there yet."""

    def __init__(self, console: Console) -> None:
        self._store = console.gateway.store
        self.end = ALL
        self.reads = self.closed = 0

    def stream_chunks(self, stream_id: int, offset: int, most_bytes: int) -> bytes | None:
        self.reads += 1
        if offset >= self.end:
            return None
        data = self._store.stream_chunks(stream_id, offset, most_bytes)
        assert data is None or next(chunk_heads(data)).first <= offset
        return data

    def segment_path(self, stream_id: int, first: int) -> Path | None:
        return self._store.segment_path(stream_id, first)

    def sealed_segment(self, stream_id: int, offset: int) -> StreamSegment | None:
        return None

    def close_segment_files(self) -> None:
        self.closed += 1


class LineToConsole:
    """Brings requests to the leader's API. ``hold`` keeps answers until it is false."""

    def __init__(self, follower: "Follower") -> None:
        self.is_lost = False
        self.hold = False
        self.asked: list[tuple[str, dict[str, str]]] = []
        self._follower = follower
        self._under_way: tuple[Any, str, CellAnswer] | None = None

    def ask(
        self, method: str, target: str, headers: Sequence[tuple[str, str]], content: bytes, answer: CellAnswer
    ) -> CellFlow:
        self.asked.append((target, dict(headers)))
        lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers)]
        raw = "\r\n".join([*lines, f"Content-Length: {len(content)}"]).encode() + b"\r\n\r\n" + content
        self._under_way = self._follower.console.send_raw(raw), method, answer
        return NO_FLOW

    def advance(self) -> None:
        """Bring the answer back, once it is complete."""
        if self._under_way is None or self.hold:
            return
        transport, method, answer = self._under_way
        if is_complete(transport.value(), method):
            self._under_way = None
            found = parsed(transport.value(), method)
            headers = [(name.encode(), value.encode()) for name, value in found.headers.items()]
            answer.begun(found.status, headers)
            answer.piece(found.content)
            answer.ended()

    def lose(self) -> None:
        """End the connection to the leader."""
        self.is_lost = True
        under_way, self._under_way = self._under_way, None
        if under_way is not None:
            under_way[2].failed("the connection to it was lost")


class Follower:
    """One client's connection at a node that follows; ``epoch`` is that of its copy, 0 for none."""

    def __init__(self, max_reads: int = 2, leads_epoch: int = 7) -> None:
        self.console = Console()
        self.clock = FakeClock()
        self.lead(LogPlace(1, leads_epoch))
        self.epoch = leads_epoch
        self.copy: LaggingCopy | None = LaggingCopy(self.console)
        self.worker = InlineWorker(self.console.clock)
        self.line: Any = LineToConsole(self)  # Any: a test may use another line
        self.on_turn: Callable[[], None] = lambda: None
        self.reads = CopyReads(
            "b", self, lambda request: self.line, self._reader, max_reads, 1000, self.clock, self.console.context.slices
        )
        self._factory = HttpFactory(self.reads, HttpLimits(), self.console.clock)

    def lead(self, place: LogPlace | None) -> None:
        """Let the leader be that of a cell and an epoch; ``None`` if it runs alone."""
        object.__setattr__(self.console.context, "log_place", place)

    def _reader(self, epoch: int) -> SplitReader[CopiedStream]:
        return SplitReader(self.worker, self.worker, 2)

    def epochs(self) -> Mapping[int, int]:
        return {1: self.epoch} if self.epoch and self.copy is not None else {}

    def store(self, cell: int) -> LaggingCopy | None:
        return self.copy

    def connect(self) -> Any:
        """Return the transport of a new connection, whose ``protocol`` takes bytes."""
        transport: Any = StringTransport()  # type: ignore[no-untyped-call]
        transport.protocol = self._factory.buildProtocol(None)
        transport.protocol.makeConnection(transport)
        return transport

    def send(self, path: str, method: str = "GET", content: bytes = b"", **headers: str) -> Any:
        """Send a request on a new connection, without advancing the clock."""
        lines = [f"{method} /api{path} HTTP/1.1", "Host: here", f"Content-Length: {len(content)}"]
        lines.append(f"Authorization: Basic {b64encode(b'guest:guest').decode()}")
        lines += [f"{name}: {value}" for name, value in headers.items()]
        transport = self.connect()
        transport.protocol.dataReceived("\r\n".join(lines).encode() + b"\r\n\r\n" + content)
        return transport

    def settle(self, turns: int = 50) -> None:
        """Let time pass."""
        for _ in range(turns):
            self.on_turn()
            self.console.clock.advance(0.001)
            self.console.gateway.settle()
            self.line.advance()

    def answered(self, transport: Any) -> Answer:
        """Wait for the answer on a connection."""
        self.settle()
        return parsed(transport.value())

    def ask(self, path: str, method: str = "GET", content: bytes = b"", **headers: str) -> Answer:
        """Send a request, and return the answer."""
        transport = self.send(path, method, content, **headers)
        self.settle()
        return parsed(transport.value(), method)
