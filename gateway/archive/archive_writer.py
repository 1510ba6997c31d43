"""Writing archives to tables: the columnar worker converts each sealed segment, in order.

The kernel truncates a segment once its files are written; the next one of the archive waits until that is durable, so
that a crash repeats one segment at most. A segment that cannot be written is retried without limit; meanwhile the
archive fills up and blocks its publishers.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from gateway.archive.redaction import BodyRule, rules_of
from gateway.columnar.tables.iceberg_address import ARCHIVE_TABLE, TRACE_TABLE, IcebergAddress
from gateway.columnar.tables.schema_files import SchemaFile
from gateway.columnar.tables.table_directory import shortened
from gateway.kernel.archives.archive import QUEUE, TRACE, Archive
from gateway.kernel.events import Event
from gateway.kernel.messages.chunks import chunk_heads

if TYPE_CHECKING:
    from gateway.kernel.broker.broker import Broker
    from gateway.kernel.journal.changes import StreamSegment
    from gateway.kernel.journal.records.topology import ArchiveRecord
    from gateway.worker_process.framing import Head
    from gateway.worker_process.process import WorkerAnswer, WorkerProcess

#: Interval at which we check whether the store has put a segment into a file, in seconds.
POLL_INTERVAL_S: Final = 0.25

#: Delay before a segment that could not be written is tried again, in seconds.
RETRY_DELAY_S: Final = 5.0

#: Bytes of an in-memory segment that are sent at once: they are copied within one turn.
PART_SIZE: Final = 2 * 1024 * 1024


class ArchiveWriter:
    """Writes one segment at a time to files, from the archive that has waited longest.

    ``has_files`` tells whether the store puts segments into files; otherwise their bytes are sent by pipe, in
    parts. ``touch`` ensures that the current turn is ended after work was done. ``target`` is the directory of the
    tables, or the address of Iceberg tables; ``schemas`` are those of the typed tables by name. ``redact`` are the
    rules for bodies.
    """

    def __init__(
        self,
        broker: "Broker",
        worker: "WorkerProcess",
        target: Path | IcebergAddress,
        touch: Callable[[], None],
        *,
        has_files: bool,
        redact: Sequence[BodyRule] = (),
        schemas: Mapping[str, SchemaFile] = MappingProxyType({}),
    ) -> None:
        self._broker = broker
        self._worker = worker
        self._target = target
        self._touch = touch
        self._has_files = has_files
        self._redact = redact
        self._schemas = schemas
        self._due: deque[Archive] = deque()
        self._paused: set[Archive] = set()
        self._written_to: dict[Archive, int] = {}  # the end of the last part, of segments in several parts
        self._is_busy = False
        broker.archive_context.on_sealed = self._on_sealed

    def _on_sealed(self, archive: Archive, segment: "StreamSegment") -> None:
        self._put_in_line(archive)
        self._start_next()

    def _put_in_line(self, archive: Archive) -> None:
        if archive.waiting and archive not in self._due and archive not in self._paused:
            self._due.append(archive)

    def _start_next(self) -> None:
        """Start with the next archive that has a segment to write, unless one is being written."""
        while self._due and not self._is_busy:
            archive = self._due.popleft()
            if archive.waiting:
                first = archive.waiting[0].first
                self._write(archive, archive.waiting[0], max(first, self._written_to.get(archive, first)))

    def _write(self, archive: Archive, segment: "StreamSegment", offset: int) -> None:
        """Request the writing of a segment's messages from ``offset`` on, or of as many as one request may hold."""
        table = archive.record.table_of(segment.first)
        if table and table not in self._schemas:
            self._fail(archive, f"no schema in archive.schemas describes the table '{table}'")
            return
        self._is_busy = True
        if not self._has_files:
            chunks = archive.log.read(offset, PART_SIZE) or b""
            end = min(segment.end, max((head.end for head in chunk_heads(chunks)), default=segment.end))
            self._ask(archive, segment, (offset, end), None, chunks)
        elif (path := archive.log.segment_path(segment.first)) is not None:
            self._ask(archive, segment, (segment.first, segment.end), path, b"")
        else:
            self._retry_later(archive, POLL_INTERVAL_S)

    def _ask(
        self, archive: Archive, segment: "StreamSegment", range: tuple[int, int], path: Path | None, chunks: bytes
    ) -> None:
        head = self._request(archive, range) | {"path": None if path is None else str(path.absolute())}
        self._worker.ask(head, chunks, lambda answer: self._on_answer(archive, segment, range[1], answer))

    def _request(self, archive: Archive, range: tuple[int, int]) -> "Head":
        record = archive.record
        is_trace = record.source == TRACE
        queue = record.name if record.source == QUEUE else None
        fields = {} if is_trace else {"kind": record.source, "name": record.name, "queue": queue}
        return {
            **self._table(record, fields, record.table_of(range[0])),
            "kind": "trace" if is_trace else "messages",
            "vhost": record.vhost,
            "queue": queue,
            "redact": [] if is_trace else rules_of(self._redact, record.name),
            "from": range[0],
            "to": range[1],
        }

    def _table(self, record: "ArchiveRecord", fields: "Head", typed: str) -> "Head":
        """Return the part of a request that depends on the format, and on the typed table if it has one."""
        table = TRACE_TABLE if record.source == TRACE else ARCHIVE_TABLE
        if isinstance(self._target, IcebergAddress):
            source = {"source": record.source, "name": record.name, "since_ms": record.since_ms}
            schema = {"schema": self._schemas[typed].as_head()} if typed else {}
            return {"do": "rows", "table": table, "iceberg": self._target.as_head(), **source, **schema}
        return {
            "do": "table",
            "table": str(self._target.absolute() / table),
            "stem": "-".join(filter(None, (record.source, shortened(record.name), str(record.since_ms)))),
            "says": {**fields, "sealed_ms": self._broker.journal.now_ms},
        }

    def _on_answer(self, archive: Archive, segment: "StreamSegment", end: int, answer: "WorkerAnswer") -> None:
        self._touch()
        if not archive.waiting or archive.waiting[0] is not segment:  # its virtual host was deleted meanwhile
            self._written_to.pop(archive, None)
            self._finish(archive)
        elif answer.error is not None:
            self._fail(archive, answer.error)
        elif end < segment.end:
            self._written_to[archive] = end
            self._write(archive, segment, end)
        else:
            self._written_to.pop(archive, None)
            archive.filed(segment.end)
            self._emit("archive.filed", archive, files=answer.head["files"])
            self._finish_when_durable(archive)

    def _fail(self, archive: Archive, reason: str) -> None:
        archive.failure = reason
        self._emit("archive.failed", archive, error=reason)
        self._retry_later(archive, RETRY_DELAY_S)

    def _finish_when_durable(self, archive: Archive) -> None:
        """Continue with this archive once its truncation is durable."""
        journal = self._broker.journal
        truncated_at = journal.pending_lsn
        self._pause(archive)
        journal.when_durable(truncated_at, lambda: self._resume(archive))

    def _retry_later(self, archive: Archive, delay_s: float) -> None:
        self._pause(archive)
        self._broker.clock.call_later(delay_s, lambda: self._resume(archive))

    def _pause(self, archive: Archive) -> None:
        """Continue with the other archives."""
        self._paused.add(archive)
        if archive in self._due:
            self._due.remove(archive)
        self._is_busy = False
        self._start_next()

    def _resume(self, archive: Archive) -> None:
        self._paused.discard(archive)
        self._put_in_line(archive)
        self._start_next()

    def _finish(self, archive: Archive) -> None:
        self._is_busy = False
        self._put_in_line(archive)
        self._start_next()

    def _emit(self, name: str, archive: Archive, **details: object) -> None:
        record = archive.record
        waiting = {"source": record.source, "waiting_bytes": archive.waiting_bytes}
        self._broker.events.emit(Event(name, record.vhost, record.name, {**waiting, **details}))
