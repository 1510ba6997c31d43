"""Segments of typed tables: the rows in the table of a schema, and those that it refuses among the dead letters.

The commit of the typed rows decides which rows are accepted, and has the identity of the segment even if there are
none. The dead letters are the other rows: after a crash between both commits they are found by a comparison with the
typed table, so that another schema or another worker cannot decide otherwise.
"""

from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.table import Table

from gateway.columnar.bodies.languages import open_schema
from gateway.columnar.encoding.envelope_columns import text
from gateway.columnar.encoding.pieces import Piece
from gateway.columnar.encoding.schema import MESSAGES
from gateway.columnar.encoding.typed_messages import DEAD_LETTERS, SOURCE, TypedMessages, typed_columns
from gateway.columnar.iceberg.evolution import fitting
from gateway.columnar.iceberg.segment import Segment
from gateway.columnar.iceberg.segment_commits import SegmentCommits
from gateway.columnar.tables.iceberg_address import DEAD_LETTER_TABLE
from gateway.columnar.tables.schema_files import SchemaFile

#: The columns that identify a message of one archive.
_KEY: Final = ("offset", "timestamp")

#: Schemas that are kept open.
_MOST_OPEN: Final = 64

Rows = Callable[[], Iterable[Piece]]
"""Returns the rows of a segment."""


class TypedTable:
    """A schema file, and the columns that it gives a table. :raises ConfigurationError: if it is not valid."""

    def __init__(self, file: SchemaFile) -> None:
        self.file = file
        self.bodies = open_schema(file)
        self.columns = typed_columns(self.bodies.kind)
        self.schema = pa.schema([*MESSAGES, *SOURCE, *self.columns])


class TypedCommits:
    """Adds segments to typed tables and to the table of dead letters."""

    def __init__(self, commits: SegmentCommits) -> None:
        self._commits = commits
        self._open: dict[SchemaFile, TypedTable] = {}

    def file(self, file: SchemaFile, segment: Segment, rows: Rows) -> list[str]:
        """Add the rows of a segment, each once, whatever was added before; return the locations of new files."""
        typed = self._table(file)
        refused: list[Piece] = []

        def accepted(table: Table) -> Iterator[Piece]:
            refused.clear()
            messages = TypedMessages(file.table, typed.bodies, fitting(typed.columns, table))
            return messages.accepted(rows(), refused.append)

        filed = self._commits.file(file.table, typed.schema, segment, accepted)
        if filed.is_new:
            left = refused
        elif self._commits.has(DEAD_LETTER_TABLE, DEAD_LETTERS, segment):
            return []
        else:
            left = list(self._left(typed, filed.table, segment, rows))
        if not left:
            return filed.files
        return filed.files + self._commits.file(DEAD_LETTER_TABLE, DEAD_LETTERS, segment, lambda _: left).files

    def _table(self, file: SchemaFile) -> TypedTable:
        if file not in self._open:
            if len(self._open) >= _MOST_OPEN:
                self._open.clear()
            self._open[file] = TypedTable(file)
        return self._open[file]

    def _left(self, typed: TypedTable, table: Table, segment: Segment, rows: Rows) -> Iterator[Piece]:
        """Yield the rows of a segment that its typed table lacks, as dead letters."""
        filed = _filed_rows(table, segment)
        for piece in rows():
            offsets, times = (piece.batch.column(name).cast(pa.int64()).to_pylist() for name in _KEY)
            places = [place for place, key in enumerate(zip(offsets, times, strict=True)) if key not in filed]
            if places:
                missing = piece._replace(batch=piece.batch.take(pa.array(places, pa.int32())))
                yield from _with_reasons(typed, missing)


def _with_reasons(typed: TypedTable, piece: Piece) -> Iterator[Piece]:
    """Yield rows as dead letters; those that the schema accepts now were refused by an earlier one."""
    refused: list[Piece] = []
    messages = TypedMessages(typed.file.table, typed.bodies, typed.columns)
    accepted = list(messages.accepted([piece], refused.append))
    yield from refused
    for other in accepted:
        batch = other.batch.select(MESSAGES.names)
        for name, value in (("table", typed.file.table), ("reason", "an earlier schema has refused it")):
            batch = batch.append_column(name, pa.repeat(pa.scalar(value, pa.string()), batch.num_rows))
        yield other._replace(batch=batch)


def _filed_rows(table: Table, segment: Segment) -> set[tuple[int, int]]:
    """Return the offsets and times, in µs, of the rows of a segment that its table has."""
    expressions: Any = import_module("pyiceberg.expressions")  # Any: mypy does not know its constructors
    conditions = (
        expressions.EqualTo("vhost", text(segment.vhost)),
        expressions.EqualTo("source", segment.source),
        expressions.EqualTo("source_name", text(segment.name)),
        expressions.GreaterThanOrEqual("offset", segment.first),
        expressions.LessThan("offset", segment.end),
    )
    found = table.scan(expressions.And(*conditions), selected_fields=_KEY).to_arrow()
    keys = (pc.cast(found[name], pa.int64()).to_pylist() for name in _KEY)
    return set(zip(*keys, strict=True))
