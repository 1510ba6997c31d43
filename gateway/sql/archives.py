"""Archives and the trace as tables: of Parquet files only the columns and row groups that a query needs are read."""

import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from gateway.sql.api import Api, SqlFailed
from gateway.sql.bounds import may_select, moment, time_bounds_ms
from gateway.sql.remote_table import BATCH_ROWS, RemoteTable

_FORMAT: Final = ds.ParquetFileFormat(default_fragment_scan_options=ds.ParquetFragmentScanOptions(pre_buffer=True))


class ArchiveTable(RemoteTable):
    """An archive of a ``source`` (``exchange``, ``queue`` or ``trace``), with the messages that are in files.

    They are those in all tables of the broker, or in one ``table``. Files whose times or offsets a filter excludes are
    not opened.
    """

    def __init__(self, api: Api, vhost: str, source: str, name: str, schema: pa.Schema, table: str = "") -> None:
        super().__init__(schema)
        self._api = api
        self._path = ("archive-files", vhost)
        self._archive = {"source": source, "name": name}
        self._table = {"table": table} if table else {}

    def batches(self, columns: list[str], wanted: Any) -> Iterator[pa.RecordBatch]:
        """Yield the messages of the files, in their order."""
        for file in self._files(wanted):
            if wanted is None or may_select(wanted, _guarantee(file, self.schema), self.schema):
                query = {**self._archive, "file": file["file"], "proof": file["proof"]}
                opened = pa.PythonFile(RemoteFile(self._api, self._path, query, file["bytes"]), mode="r")
                yield from _FORMAT.make_fragment(opened).to_batches(
                    schema=self.schema,
                    columns=columns,
                    filter=wanted,
                    batch_size=BATCH_ROWS,
                    batch_readahead=1,
                    use_threads=False,
                )

    def _files(self, wanted: Any) -> Iterator[Mapping[str, Any]]:
        """Yield the files that may have messages of the wanted times."""
        times, after, more = time_bounds_ms(wanted, self.schema), "", True
        while more:
            period = {"since": str(times.first), "until": str(times.end)}
            query = {**self._archive, **self._table, **period, "after": after}
            answer = self._api.get(*self._path, "list", query=query)
            for file in answer["files"]:
                after = file["file"]
                yield file
            more = answer["more"]


class SharedTable(RemoteTable):
    """A table with messages of several archives, of which the user may read these."""

    def __init__(self, schema: pa.Schema, parts: Sequence[ArchiveTable]) -> None:
        super().__init__(schema)
        self._parts = parts

    def batches(self, columns: list[str], wanted: Any) -> Iterator[pa.RecordBatch]:
        """Yield the messages of one archive after the other."""
        for part in self._parts:
            yield from part.batches(columns, wanted)


class RemoteFile(io.RawIOBase):
    """A file of an archive at the broker, of which only parts are read. ``query`` names it."""

    def __init__(self, api: Api, path: tuple[str, ...], query: Mapping[str, str], size: int) -> None:
        self._api = api
        self._path = path
        self._query = query
        self._size = size
        self._position = 0

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def seekable(self) -> bool:
        """Return that any part can be read."""
        return True

    def tell(self) -> int:
        """Return the position of the next byte."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Set the position of the next byte."""
        self._position = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        return self._position

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, all of them. :raises SqlFailed: if the file is shorter than it was listed."""
        left = self._size - self._position
        wanted = left if size < 0 else min(size, left)
        pieces = []
        while wanted > 0:
            extent = {"position": str(self._position), "size": str(wanted)}
            piece = self._api.raw(*self._path, "part", query={**self._query, **extent})
            if not piece:
                raise SqlFailed("a file of the archive is shorter than it was when it was listed")
            pieces.append(piece)
            self._position += len(piece)
            wanted -= len(piece)
        return b"".join(pieces)


def _guarantee(file: Mapping[str, Any], schema: pa.Schema) -> Any:
    """Return what all rows of a file fulfil, as far as the broker knows."""
    known = pc.scalar(True)
    if file["first_ms"] is not None and file["last_ms"] is not None:
        time = pc.field("timestamp")
        known = known & (time >= moment(file["first_ms"])) & (time < moment(file["last_ms"] + 1))
    if "offset" in schema.names and file["first"] is not None and file["next"] is not None:
        offset = pc.field("offset")
        known = known & (offset >= file["first"]) & (offset < file["next"])
    return known
