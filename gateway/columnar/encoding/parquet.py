"""Writing of columns as the Parquet files of a table, one file for each day.

A file is written under a temporary name, synced, renamed, and then listed in the manifest; a listed file is never
written again. A conversion can therefore be repeated after a crash at any point without duplicates.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from itertools import groupby
from pathlib import Path
from typing import Any, BinaryIO, Final

import pyarrow as pa
import pyarrow.parquet as pq

from gateway.columnar.encoding.pieces import DAY_MS, Piece
from gateway.columnar.tables.files import make_directory, replaced
from gateway.columnar.tables.manifest import KnownNames, Line, append_line
from gateway.columnar.tables.table_directory import day_directory, file_name

#: Rows and bytes of one row group, which a reader of one column has to fetch as a whole.
_GROUP_ROWS: Final = 131_072
_GROUP_BYTES: Final = 32 * 1024 * 1024

#: Columns whose values seldom repeat. Ids that do are as small without a dictionary, because they are compressed.
_DISTINCT: Final = frozenset({"body", "correlation_id", "message_id", "monotonic_ns", "offset", "timestamp"})


@dataclass(frozen=True, slots=True)
class Source:
    """The origin of rows. ``stem`` begins the names of their files; ``manifest_fields`` is copied to the manifest."""

    table: Path
    vhost: str
    stem: str
    manifest_fields: Line


def write_table(source: Source, schema: pa.Schema, pieces: Iterable[Piece], known: KnownNames) -> list[str]:
    """Write the files that do not exist yet, in order; return the paths of all files, relative to the table."""
    written = []
    for part in days_of(pieces):
        directory = day_directory(source.table, source.vhost, _day(part[0]))
        name = file_name(source.stem, part[0].first, part[-1].end)
        if name not in known.names_in(directory):
            make_directory(directory)
            size = _write(directory / name, schema, part)
            append_line(directory, {"file": name, **source.manifest_fields, **_figures(part), "bytes": size})
        written.append(str((directory / name).relative_to(source.table)))
    return written


def days_of(pieces: Iterable[Piece]) -> Iterator[list[Piece]]:
    """Yield the pieces of each day."""
    for _, of_day in groupby(pieces, key=lambda piece: piece.first_ms // DAY_MS):
        yield list(of_day)


def _day(piece: Piece) -> date:
    return datetime.fromtimestamp(piece.first_ms / 1000, UTC).date()


def _figures(part: list[Piece]) -> Line:
    """Return the manifest fields that describe the rows of a file."""
    return {
        "rows": sum(piece.batch.num_rows for piece in part),
        "first": part[0].first,
        "next": part[-1].end,
        "first_ms": part[0].first_ms,
        "last_ms": part[-1].last_ms,
    }


def _write(path: Path, schema: pa.Schema, part: list[Piece]) -> int:
    with replaced(path) as file, parquet_writer(file, schema) as writer:
        write_pieces(writer, schema, part)
    return path.stat().st_size


def write_pieces(writer: pq.ParquetWriter, schema: pa.Schema, part: list[Piece]) -> None:
    """Write pieces in row groups of a limited size."""
    for group in _groups(part):
        writer.write_table(pa.Table.from_batches(group, schema), row_group_size=_GROUP_ROWS)


def parquet_writer(file: BinaryIO, schema: pa.Schema, footers: list[Any] | None = None) -> pq.ParquetWriter:
    """Return a writer of a file, which appends the file's metadata to ``footers`` when it is closed.

    What seldom repeats gets no dictionary, which would become too large and be given up.
    """
    repeating = [field.name for field in schema if field.name not in _DISTINCT]
    return pq.ParquetWriter(file, schema, compression="zstd", use_dictionary=repeating, metadata_collector=footers)


def _groups(part: list[Piece]) -> Iterator[list[pa.RecordBatch]]:
    """Yield the batches of each row group."""
    group: list[pa.RecordBatch] = []
    rows = size = 0
    for piece in part:
        group.append(piece.batch)
        rows += piece.batch.num_rows
        size += piece.batch.nbytes
        if rows >= _GROUP_ROWS or size >= _GROUP_BYTES:
            yield group
            group, rows, size = [], 0, 0
    if group:
        yield group
