"""The columnar worker: a process beside the broker that converts streams to Arrow and Parquet.

It reads frames (:mod:`gateway.worker_process.framing`) from standard input, processes them in order, answers each
on standard output, and ends at the end of its input. The requests are:

* ``arrow`` (``vhost``, ``queue``, ``partition``, ``from``, ``to``): returns an Arrow stream of these offsets, from
  the chunks in the payload;
* ``segment`` (``vhost``, ``queue``, ``partition``, ``path``, perhaps ``into``): writes the Arrow file of a ``.chunks``
  file, beside it as ``.arrow``, or with the path ``into``, where it need not survive a loss of power;
* ``table`` (``table``, ``kind``, ``vhost``, ``queue``, ``stem``, ``says``, ``from``, ``to``, ``path``): writes Parquet
  files into the directory ``table`` of the chunks at ``path``, or of those in the payload where that is null;
* ``rows`` (``iceberg``, ``table``, ``kind``, ``vhost``, ``queue``, ``source``, ``name``, ``since_ms``, ``from``,
  ``to``, ``path``, perhaps ``schema``): the same into an Iceberg table of this name at the address ``iceberg``, or
  into the typed table of a schema file;
* ``schemas`` (``iceberg``, ``schemas``): checks schema files, and the typed tables that exist; returns ``faults``;
* ``sources``, ``files``, ``columns``, ``part``: lists archives and reads their files, see ``gateway/columnar/reading``.

An answer has the ``id`` of its request, and ``error`` as text if the request failed.
"""

import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from gateway.columnar.encoding.arrow_stream import arrow_stream, write_sealed
from gateway.columnar.encoding.body_redaction import BodyRedaction
from gateway.columnar.encoding.direct_rows import DirectReader
from gateway.columnar.encoding.formats import envelope_reader
from gateway.columnar.encoding.messages import MessageColumns
from gateway.columnar.encoding.parquet import Source, write_table
from gateway.columnar.encoding.pieces import Piece
from gateway.columnar.encoding.trace_events import TraceColumns
from gateway.columnar.reading.archive_files import ArchiveFilesReader
from gateway.columnar.tables.iceberg_address import IcebergAddress
from gateway.columnar.tables.manifest import KnownNames
from gateway.columnar.tables.schema_files import SchemaFile
from gateway.columnar.tables.table_directory import exclusively, sweep
from gateway.worker_process.framing import Frame, FrameReader, Head, encode_frame

if TYPE_CHECKING:
    from gateway.columnar.iceberg.filing import Filing

#: An offset beyond all others.
_EVERYTHING: Final = sys.maxsize

#: The broker has priority on a machine with one processor.
_NICENESS: Final = 5


class Worker:
    """Answers the broker's requests. Owns the caches kept between requests."""

    def __init__(self) -> None:
        self._messages = MessageColumns(envelope_reader(), DirectReader())
        self._trace = TraceColumns()
        self._known = KnownNames()
        self._filing: Filing | None = None
        self._swept: set[Path] = set()
        reader = ArchiveFilesReader()
        self._operations: Mapping[str, Callable[[Head, bytes], Frame]] = {
            "arrow": self._arrow,
            "segment": self._segment,
            "table": self._table,
            "rows": self._rows,
            "sources": reader.sources,
            "files": reader.files,
            "columns": reader.columns,
            "part": reader.part,
            "schemas": self._schemas,
        }

    def answer(self, request: Frame) -> Frame:
        """Answer a request; a failure becomes an error answer, so that the next requests are still processed."""
        head = request.head
        try:
            done = self._operations[head["do"]](head, request.payload)
        except Exception as error:  # the boundary between two processes: the broker decides what a failure means
            return Frame({"id": head.get("id"), "error": f"{type(error).__name__}: {error}"}, b"")
        return Frame({"id": head.get("id"), **done.head}, done.payload)

    def _arrow(self, head: Head, chunks: bytes) -> Frame:
        pieces = self._messages.pieces([chunks], head["from"], head["to"], **_place(head))
        return Frame({}, arrow_stream(pieces))

    def _segment(self, head: Head, _: bytes) -> Frame:
        path = Path(head["path"])
        pieces = self._messages.pieces([path.read_bytes()], 0, _EVERYTHING, **_place(head))
        into = head.get("into")
        if into is None:
            return Frame({"bytes": write_sealed(path.with_suffix(".arrow"), pieces)}, b"")
        return Frame({"bytes": write_sealed(Path(into), pieces, is_synced=False)}, b"")

    def _table(self, head: Head, payload: bytes) -> Frame:
        table = Path(head["table"])
        source = Source(table, head["vhost"], head["stem"], head["says"])
        with exclusively(table):
            if table not in self._swept:
                sweep(table)
                self._swept.add(table)
            columns = self._trace if head["kind"] == "trace" else self._messages
            return Frame({"files": write_table(source, columns.schema, self._pieces(head, payload), self._known)}, b"")

    def _rows(self, head: Head, payload: bytes) -> Frame:
        from gateway.columnar.iceberg.filing import Filing  # imports pyiceberg, which takes a second

        if self._filing is None:
            self._filing = Filing(IcebergAddress.from_head(head["iceberg"]))
        return Frame({"files": self._filing.file(head, lambda: self._pieces(head, payload))}, b"")

    def _schemas(self, head: Head, _: bytes) -> Frame:
        from gateway.columnar.iceberg.schema_check import schema_faults

        address = IcebergAddress.from_head(head["iceberg"])
        return Frame({"faults": schema_faults(address, map(SchemaFile.from_head, head["schemas"]))}, b"")

    def _pieces(self, head: Head, payload: bytes) -> Iterator[Piece]:
        """Yield the rows of a sealed segment of an archive."""
        chunks = Path(head["path"]).read_bytes() if head.get("path") else payload
        between = [chunks], head["from"], head["to"]
        if head["kind"] == "trace":
            return self._trace.pieces(*between, vhost=head["vhost"])
        messages = self._messages.pieces(*between, vhost=head["vhost"], queue=head["queue"])
        return BodyRedaction(head.get("redact", ())).pieces(messages)


def _place(head: Head) -> dict[str, Any]:
    return {name: head[name] for name in ("vhost", "queue", "partition")}


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer requests until the input ends."""
    worker = Worker()
    for request in _frames(requests):
        answers.write(encode_frame(*worker.answer(request)))
        answers.flush()


def _frames(requests: BinaryIO) -> Iterator[Frame]:
    reader = FrameReader()
    while data := os.read(requests.fileno(), 1 << 20):
        yield from reader.feed(data)


def main() -> None:
    """Serve the broker on standard input and output."""
    # The broker ends the worker by closing the pipe. A terminal, and systemctl kill, send these to both processes.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    os.nice(_NICENESS)
    try:
        serve(sys.stdin.buffer, sys.stdout.buffer)
    except (BrokenPipeError, ConnectionResetError):  # the broker died: there is no reader left
        os._exit(0)


if __name__ == "__main__":
    main()
