"""The files of an archive for readers over HTTP: which sources there are, the files of one, and parts of a file.

The messages of a source may be in several tables: the untyped one, typed ones, and that of dead letters.

These are requests to the columnar worker, because manifests and catalogues are read from disks and object stores. Each
file has the rows of one source; a file that may have others is never listed.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any, Final, Protocol

import pyarrow as pa

from gateway.columnar.reading.listed_file import FiledSource, ListedFile, Period, SourceTable
from gateway.columnar.reading.parquet_files import ParquetFiles
from gateway.columnar.tables.iceberg_address import IcebergAddress
from gateway.worker_process.framing import Frame, Head

#: Files in one answer; a reader asks for those after the last one.
MOST_FILES: Final = 500

#: Bytes of a file in an object store in one answer.
MOST_BYTES: Final = 2**20


class TableFiles(Protocol):
    """The files of the archive in one format."""

    def sources(self, vhost: str) -> Iterable[SourceTable]:
        """Return the sources that have files in a virtual host, with each of their tables."""
        ...

    def files(self, source: FiledSource, period: Period, table: str) -> Iterable[ListedFile]:
        """Return the files of a source that may have rows of a period, in the order of their URIs.

        ``table`` is the one they are of; all of them if it is empty.
        """
        ...

    def columns(self, source: FiledSource, table: str) -> pa.Schema | None:
        """Return the columns of a table, ``None`` if it has no rows of the source."""
        ...

    def part(self, file: str, position: int, size: int) -> bytes:
        """Return bytes of a file. :raises FileNotFoundError: if it was removed."""
        ...


class ArchiveFilesReader:
    """Answers the requests ``sources``, ``files``, ``columns`` and ``part``. Keeps the catalogue open between them."""

    def __init__(self) -> None:
        self._opened: dict[str, TableFiles] = {}

    def sources(self, head: Head, _: bytes) -> Frame:
        """Return the sources of a ``vhost`` as a list of kinds, names and tables."""
        found = sorted(set(self._files_at(head).sources(head["vhost"])))
        listed = [(each.source.kind, each.source.name, each.table) for each in found]
        return Frame({}, json.dumps(listed).encode())

    def files(self, head: Head, _: bytes) -> Frame:
        """Return the files of a source after the URI ``after``, up to a limit; ``more`` is whether there are more."""
        period = Period(head["since_ms"], head["until_ms"])
        files = self._files_at(head).files(_source(head), period, head["table"])
        later = (each for each in files if each.file > head["after"])
        found = list(islice(later, MOST_FILES + 1))
        listed = [asdict(each) for each in found[:MOST_FILES]]
        return Frame({"more": len(found) > MOST_FILES}, json.dumps(listed).encode())

    def columns(self, head: Head, _: bytes) -> Frame:
        """Return the columns of a ``table`` as Arrow serializes a schema; empty if it has no rows of the source."""
        found = self._files_at(head).columns(_source(head), head["table"])
        return Frame({}, b"" if found is None else found.serialize().to_pybytes())

    def part(self, head: Head, _: bytes) -> Frame:
        """Return up to ``MOST_BYTES`` of the ``file`` from ``position``; ``is_gone`` if the file was removed."""
        try:
            found = self._files_at(head).part(head["file"], head["position"], min(head["size"], MOST_BYTES))
        except FileNotFoundError:
            return Frame({"is_gone": True}, b"")
        return Frame({}, found)

    def _files_at(self, head: Mapping[str, Any]) -> TableFiles:
        """Return the files at the ``place`` of a request: a directory, or the address of Iceberg tables."""
        place = head["place"]
        key = json.dumps(place, sort_keys=True)
        if key not in self._opened:
            self._opened[key] = _opened(place)
        return self._opened[key]


def _source(head: Head) -> FiledSource:
    return FiledSource(head["vhost"], head["kind"], head["name"])


def _opened(place: Mapping[str, Any]) -> TableFiles:
    if "directory" in place:
        return ParquetFiles(Path(place["directory"]))
    from gateway.columnar.reading.iceberg_files import IcebergFiles  # imports pyiceberg, which takes a second

    return IcebergFiles(IcebergAddress.from_head(place["iceberg"]))
