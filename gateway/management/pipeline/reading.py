"""Reading of stream messages as an Arrow stream: copied from a sealed segment, or encoded by the worker process.

A response contains messages of one segment. It may start before the requested range, as record batches are copied
whole, and end before its end: readers continue from there.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Generic, Protocol, TypeVar

from twisted.internet.defer import Deferred, DeferredSemaphore, maybeDeferred
from twisted.python.failure import Failure

from gateway.columnar.tables.sealed import END_OF_STREAM, SealedFile
from gateway.kernel.journal.changes import StreamSegment
from gateway.kernel.messages.chunks import chunk_heads
from gateway.management.http.downloads import Download, Extent
from gateway.management.http.errors import HttpError
from gateway.management.pipeline.refusals import offset_ahead, offset_gone

ARROW: Final = "application/vnd.apache.arrow.stream"

#: Bytes of an unsealed segment in one response: they are encoded anew for each response.
MAX_CHUNK_BYTES: Final = 1024 * 1024

_MAX_INDEXES: Final = 64


class EncodingWorker(Protocol):
    """Encodes chunks as Arrow in a worker process."""

    def ask(
        self,
        head: dict[str, Any],
        payload: bytes,
        answered: "Callable[[EncodingResult], None]",
        *,
        is_urgent: bool = False,
    ) -> None:
        """Send a request; ``answered`` is called once, in a later turn."""
        ...


class ReadableStream(Protocol):
    """A stream, or the part of one that can be read here."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def vhost_name(self) -> str:
        """The name of its virtual host."""
        ...

    @property
    def first_offset(self) -> int:
        """The offset of the first message that can be read."""
        ...

    @property
    def durable_end(self) -> int:
        """The end of the messages that can be read (exclusive)."""
        ...

    def segment_of(self, offset: int) -> StreamSegment | None:
        """Return the segment that has a message, at least if it is sealed."""
        ...

    def segment_path(self, first: int) -> Path | None:
        """Return the file of the sealed segment that begins with ``first``; ``None`` if there is none."""
        ...

    def read(self, offset: int, most_bytes: int) -> bytes | None:
        """Return chunks, the first one with the message at ``offset``; ``None`` if it cannot be read."""
        ...


StreamT = TypeVar("StreamT", bound=ReadableStream)
_EncodedT = TypeVar("_EncodedT", bound=ReadableStream, contravariant=True)


class SegmentEncoder(Protocol[_EncodedT]):
    """Encodes sealed segments, each once, of streams that are read."""

    def encode_from_now_on(self, stream: _EncodedT) -> None:
        """Start to encode sealed segments of a stream, because it is read."""
        ...

    def encode_now(self, stream: _EncodedT, segment: StreamSegment, done: Callable[[bool], None]) -> None:
        """Encode a segment with priority; call ``done`` with whether its file exists."""
        ...


class EncodingResult(Protocol):
    """The answer of the worker; ``error`` is ``None`` on success."""

    @property
    def head(self) -> dict[str, Any]:
        """Further fields."""
        ...

    @property
    def payload(self) -> bytes:
        """The Arrow stream."""
        ...

    @property
    def error(self) -> str | None:
        """The reason of a failure."""
        ...


@dataclass(frozen=True, slots=True)
class ReadRange(Generic[StreamT]):
    """A range of messages of one stream: from ``begin`` up to, not including, ``end``."""

    stream: StreamT
    begin: int
    end: int

    def require_there(self) -> None:
        """Check that the first message exists. :raises HttpError: if it does not, any more or yet."""
        stream = self.stream
        if self.begin < stream.first_offset:
            raise offset_gone(stream.name, self.begin, stream.first_offset)
        if self.begin >= min(self.end, stream.durable_end):
            raise offset_ahead(stream.name, self.begin, stream.durable_end)


def beside(chunks: Path) -> Path:
    """Return the path of a segment's Arrow file beside its chunks."""
    return chunks.with_suffix(".arrow")


class SplitReader(Generic[StreamT]):
    """Answers up to ``max_reads`` reads at a time, to leave reactor time to other clients.

    Caches the indexes of recently read files. ``arrow_path`` returns the Arrow file of a file of chunks.
    """

    def __init__(
        self,
        worker: EncodingWorker,
        encoder: SegmentEncoder[StreamT],
        max_reads: int,
        arrow_path: Callable[[Path], Path] = beside,
    ) -> None:
        self._worker = worker
        self._encoder = encoder
        self._arrow_path = arrow_path
        self._read_slots = DeferredSemaphore(max_reads)
        #: Those of requests to the worker: as many again may remain of reads that were cancelled.
        self._worker_slots = DeferredSemaphore(2 * max_reads)
        self._file_by_path: OrderedDict[Path, SealedFile] = OrderedDict()

    def read(self, read_range: ReadRange[StreamT]) -> "Deferred[Download]":
        """Return a deferred of the response, when a slot is free; the slot is released when the response is closed.

        It fails with ``HttpError`` if the first message does not exist (any more).
        """
        return self._read_slots.acquire().addCallback(lambda _: self._read_in_slot(read_range))

    def _read_in_slot(self, read_range: ReadRange[StreamT]) -> "Deferred[Download]":
        def failed(failure: Failure) -> Failure:
            self._read_slots.release()
            return failure

        opened = maybeDeferred(self._open_range, read_range)
        return opened.addCallbacks(lambda download: download.closing(self._read_slots.release), failed)

    def _open_range(self, read_range: ReadRange[StreamT]) -> "Deferred[Download] | Download":
        read_range.require_there()
        stream = read_range.stream
        segment = stream.segment_of(read_range.begin)
        is_whole = segment is not None and segment.is_sealed and segment.end <= stream.durable_end
        path = stream.segment_path(segment.first) if segment is not None and is_whole else None
        if segment is None or path is None:
            self._encoder.encode_from_now_on(stream)
            return self._from_worker(read_range)
        return self._from_file(read_range, path) or self._from_encoder(read_range, segment, path)

    def _from_encoder(self, read_range: ReadRange[StreamT], segment: StreamSegment, path: Path) -> "Deferred[Download]":
        """Let the encoder write the segment's file, and return a part of it."""
        opened: Deferred[bool] = Deferred(canceller=lambda _: None)

        def done(is_there: bool) -> None:
            if not opened.called:
                opened.callback(is_there)

        def read(_: bool) -> "Deferred[Download] | Download":
            is_there = read_range.stream.segment_path(segment.first) == path
            return (self._from_file(read_range, path) if is_there else None) or self._from_worker(read_range)

        self._encoder.encode_now(read_range.stream, segment, done)
        return opened.addCallback(read)

    def _from_file(self, read_range: ReadRange[StreamT], path: Path) -> Download | None:
        """Return a part of the segment's file; ``None`` if it does not exist."""
        file = self._file(self._arrow_path(path))
        batches = () if file is None else file.batches_between(read_range.begin, read_range.end)
        if file is None or not batches:
            return None
        first, last = batches[0], batches[-1]
        body = Extent(first.position, last.position + last.size - first.position)
        return Download.of_file(
            file.path,
            [Extent(0, file.schema_size), body],
            END_OF_STREAM,
            _headers(first.first, last.first + last.rows),
        )

    def _file(self, path: Path) -> SealedFile | None:
        """Return the index of a file, which is cached; files never change."""
        known = self._file_by_path.pop(path, None)
        file = SealedFile.read(path) if known is None else known
        if file is not None:
            self._file_by_path[path] = file
            if len(self._file_by_path) > _MAX_INDEXES:
                self._file_by_path.popitem(last=False)
        return file

    def _from_worker(self, read_range: ReadRange[StreamT]) -> "Deferred[Download]":
        """Let the worker encode chunks of the segment."""
        stream = read_range.stream
        chunks = stream.read(read_range.begin, MAX_CHUNK_BYTES)
        if chunks is None:
            raise offset_gone(stream.name, read_range.begin, stream.first_offset)
        *_, last = chunk_heads(chunks)
        end = min(read_range.end, last.end, stream.durable_end)
        head = {
            "do": "arrow",
            "vhost": stream.vhost_name,
            "queue": stream.name,
            "partition": 0,
            "from": read_range.begin,
            "to": end,
        }
        headers = _headers(read_range.begin, end)
        return self._worker_slots.acquire().addCallback(lambda _: self._encode(head, chunks, headers))

    def _encode(self, head: dict[str, Any], chunks: bytes, headers: dict[str, str]) -> "Deferred[Download]":
        """Let the worker encode chunks; release its slot with its answer, even if the read was cancelled."""
        opened: Deferred[Download] = Deferred(canceller=lambda _: None)

        def answered(answer: EncodingResult) -> None:
            self._worker_slots.release()
            if opened.called:
                return
            if answer.error is None:
                opened.callback(Download.of_bytes(answer.payload, headers))
            else:
                opened.errback(HttpError(503, "not_now", f"the messages cannot be encoded: {answer.error}"))

        self._worker.ask(head, chunks, answered, is_urgent=True)
        return opened


def _headers(first: int, end: int) -> dict[str, str]:
    return {"Content-Type": ARROW, "X-First-Offset": str(first), "X-Next-Offset": str(end)}
