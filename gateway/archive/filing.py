"""From archives to files: each segment that is sealed becomes Parquet, by the columnar worker, in order.

The kernel lets go of a segment once it is in its files. One that could not be written is tried again, for as long as
it takes; meanwhile the archive fills up, and holds back who publishes there.
"""

from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gateway.columnar.tables.table_directory import shortened
from gateway.kernel.archives.archive import QUEUE, TRACE, Archive
from gateway.kernel.events import Event
from gateway.kernel.messages.chunks import chunk_heads

if TYPE_CHECKING:
    from gateway.kernel.broker.broker import Broker
    from gateway.kernel.journal.changes import StreamSegment
    from gateway.worker_process.framing import Head
    from gateway.worker_process.process import Child, WorkerAnswer

#: How often it is looked whether the store has put a segment into a file, in seconds.
LOOK_AGAIN_S: Final = 0.25

#: After how long a segment that could not be written is tried again, in seconds.
TRY_AGAIN_S: Final = 5.0

#: How much of a segment that is in no file is handed over at once, in bytes: it is copied within a turn.
PART_SIZE: Final = 2 * 1024 * 1024


class Filing:
    """Has one segment at a time made into files, of whichever archive waits longest.

    ``has_files`` tells whether the store puts segments into files; if not, they are handed over by pipe, in parts.
    ``touch`` makes sure that the turn ends in which something was done.
    """

    def __init__(
        self, broker: "Broker", worker: "Child", directory: Path, touch: Callable[[], None], *, has_files: bool
    ) -> None:
        self._broker = broker
        self._worker = worker
        self._directory = directory.absolute()
        self._touch = touch
        self._has_files = has_files
        self._due: deque[Archive] = deque()
        self._is_busy = False
        broker.archivists.on_sealed = self._sealed

    def _sealed(self, archive: Archive, segment: "StreamSegment") -> None:
        if archive not in self._due:
            self._due.append(archive)
        self._go_on()

    def _go_on(self) -> None:
        """Take the next archive with something to file, if none is being filed."""
        while self._due and not self._is_busy:
            archive = self._due.popleft()
            if archive.waiting:
                self._file(archive, archive.waiting[0], archive.waiting[0].first)

    def _file(self, archive: Archive, segment: "StreamSegment", offset: int) -> None:
        """Have the messages of a segment from ``offset`` on written, or as many as can be handed over at once."""
        self._is_busy = True
        if not self._has_files:
            chunks = archive.log.read(offset, PART_SIZE) or b""
            end = min(segment.end, max((head.end for head in chunk_heads(chunks)), default=segment.end))
            self._ask(archive, segment, (offset, end), None, chunks)
        elif (path := archive.log.segment_path(segment.first)) is not None:
            self._ask(archive, segment, (segment.first, segment.end), path, b"")
        else:
            self._later(archive, LOOK_AGAIN_S)

    def _ask(
        self, archive: Archive, segment: "StreamSegment", range: tuple[int, int], path: Path | None, chunks: bytes
    ) -> None:
        head = self._request(archive, range) | {"path": None if path is None else str(path.absolute())}
        self._worker.ask(head, chunks, lambda answer: self._answered(archive, segment, range[1], answer))

    def _request(self, archive: Archive, range: tuple[int, int]) -> "Head":
        record = archive.record
        is_trace = record.source == TRACE
        queue = record.name if record.source == QUEUE else None
        says = {} if is_trace else {"kind": record.source, "name": record.name, "queue": queue}
        return {
            "do": "table",
            "table": str(self._directory / ("trace" if is_trace else "archive")),
            "kind": "trace" if is_trace else "messages",
            "vhost": record.vhost,
            "queue": queue,
            "stem": "-".join(filter(None, (record.source, shortened(record.name), str(record.since_ms)))),
            "says": {**says, "sealed_ms": self._broker.journal.now_ms},
            "from": range[0],
            "to": range[1],
        }

    def _answered(self, archive: Archive, segment: "StreamSegment", end: int, answer: "WorkerAnswer") -> None:
        self._touch()
        if not archive.waiting or archive.waiting[0] is not segment:  # its virtual host went meanwhile
            self._done_with(archive)
        elif answer.error is not None:
            self._emit("archive.failed", archive, error=answer.error)
            self._later(archive, TRY_AGAIN_S)
        elif end < segment.end:
            self._file(archive, segment, end)
        else:
            archive.filed(segment.end)
            self._emit("archive.filed", archive, files=answer.head["files"])
            self._done_with(archive)

    def _later(self, archive: Archive, delay_s: float) -> None:
        """Let others go first, and come back to this archive."""
        self._broker.clock.call_later(delay_s, lambda: self._done_with(archive))
        self._is_busy = False
        self._go_on()

    def _done_with(self, archive: Archive) -> None:
        self._is_busy = False
        if archive.waiting and archive not in self._due:
            self._due.append(archive)
        self._go_on()

    def _emit(self, name: str, archive: Archive, **details: object) -> None:
        record = archive.record
        waiting = {"source": record.source, "waiting_bytes": archive.waiting_bytes}
        self._broker.events.emit(Event(name, record.vhost, record.name, {**waiting, **details}))
