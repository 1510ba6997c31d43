"""Encoding of sealed stream segments as Arrow files by the columnar worker, one segment at a time.

A stream is encoded only after its first columnar read, because encoding costs as much as publishing. The worker
serves that first read directly and encodes the stream from then on. After a restart only missing files are written;
an existing file also marks its stream as one to encode.
"""

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gateway.kernel.events import Event
from gateway.kernel.streams.stream import Stream

if TYPE_CHECKING:
    from gateway.kernel.broker.broker import Broker
    from gateway.kernel.journal.changes import StreamSegment
    from gateway.worker_process.process import WorkerAnswer, WorkerProcess

#: Interval at which we check whether the store has put a segment into a file, in seconds.
POLL_INTERVAL_S: Final = 0.25

#: Delay before a segment that could not be encoded is tried again, in seconds.
RETRY_DELAY_S: Final = 30.0


def arrow_path(chunks: Path) -> Path:
    """Return the path of a segment's Arrow file, beside its chunks."""
    return chunks.with_suffix(".arrow")


class StreamEncoder:
    """Encodes the segments of ``wanted`` streams (all streams with ``wants_all``), one at a time.

    Works only with stores that put segments into files.
    """

    def __init__(self, broker: "Broker", worker: "WorkerProcess", *, wants_all: bool) -> None:
        self._broker = broker
        self._worker = worker
        self._wants_all = wants_all
        self._wanted: set[Stream] = set()
        self._due: deque[tuple[Stream, StreamSegment]] = deque()
        self._is_busy = False
        self._callers: dict[Path, list[Callable[[bool], None]]] = {}

    def start(self) -> None:
        """Watch the existing streams and all streams declared later."""
        self._broker.events.subscribe(self._on_event, "queue")
        for vhost in self._broker.vhost_by_name.values():
            for queue in vhost.queue_by_name.values():
                if isinstance(queue, Stream):
                    self._watch(queue)
        self._start_next()

    def want(self, stream: Stream) -> None:
        """Encode a stream from now on, including its existing segments; safe to call repeatedly."""
        if stream not in self._wanted:
            self._wanted.add(stream)
            self._due.extend((stream, segment) for segment in stream.segments if segment.is_sealed)
            self._start_next()

    def _on_event(self, event: Event) -> None:
        if event.name == "queue.created":
            queue = self._broker.vhost(event.vhost).queue_by_name.get(event.subject)
            if isinstance(queue, Stream):
                self._watch(queue)
        elif event.name == "queue.deleted":
            self._wanted = {stream for stream in self._wanted if not stream.is_deleted}

    def _watch(self, stream: Stream) -> None:
        stream.log.on_sealed.append(partial(self._on_sealed, stream))
        if self._wants_all or _is_encoded(stream):
            self.want(stream)

    def _on_sealed(self, stream: Stream, segment: "StreamSegment") -> None:
        if stream in self._wanted:
            self._due.append((stream, segment))
            self._start_next()

    def _start_next(self) -> None:
        """Start encoding the next segment, unless a background encoding is already running."""
        while self._due and not self._is_busy:
            stream, segment = self._due.popleft()
            if _is_gone(stream, segment):
                continue
            path = stream.segment_path(segment.first)
            if path is None:
                self._retry_later(stream, segment, POLL_INTERVAL_S)
            elif path not in self._callers and not arrow_path(path).exists():
                self._is_busy = True
                self._request(stream, segment, path, is_urgent=False)

    def encode_now(self, stream: Stream, segment: "StreamSegment", done: Callable[[bool], None]) -> None:
        """Encode a segment before all others; call ``done`` with whether its file exists, now or later."""
        self.want(stream)
        path = stream.segment_path(segment.first)
        if path is None or arrow_path(path).exists():
            done(path is not None)
        elif path in self._callers:
            self._callers[path].append(done)
        else:
            self._request(stream, segment, path, done, is_urgent=True)

    def _request(
        self, stream: Stream, segment: "StreamSegment", path: Path, *callers: Callable[[bool], None], is_urgent: bool
    ) -> None:
        self._callers[path] = list(callers)
        head = {"do": "segment", "vhost": stream.vhost_name, "queue": stream.name, "partition": 0}
        answered = partial(self._on_answer, stream, segment, path, is_urgent)
        self._worker.ask(head | {"path": str(path.absolute())}, b"", answered, is_urgent=is_urgent)

    def _on_answer(
        self, stream: Stream, segment: "StreamSegment", path: Path, was_urgent: bool, answer: "WorkerAnswer"
    ) -> None:
        self._is_busy = self._is_busy and was_urgent
        if _is_gone(stream, segment):
            with suppress(OSError):  # the store removed its own entry, not this one
                arrow_path(path).unlink(missing_ok=True)
        elif answer.error is not None:
            details = {"first": segment.first, "error": answer.error}
            self._broker.events.emit(Event("stream.encoding_failed", stream.vhost_name, stream.name, details))
            self._retry_later(stream, segment, RETRY_DELAY_S)
        for done in self._callers.pop(path):
            done(answer.error is None and not _is_gone(stream, segment))
        self._start_next()

    def _retry_later(self, stream: Stream, segment: "StreamSegment", delay_s: float) -> None:
        self._broker.clock.call_later(delay_s, partial(self._on_sealed, stream, segment))


def _is_encoded(stream: Stream) -> bool:
    """Return whether any segment is encoded, which means that an earlier run of the node wanted this stream."""
    paths = (stream.segment_path(segment.first) for segment in stream.segments if segment.is_sealed)
    return any(path is not None and arrow_path(path).exists() for path in paths)


def _is_gone(stream: Stream, segment: "StreamSegment") -> bool:
    return stream.is_deleted or segment.end <= stream.first_offset
