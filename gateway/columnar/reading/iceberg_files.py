"""The files of an archive in Iceberg tables, from their current snapshots."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, Final

import pyarrow as pa
from pyiceberg.conversions import from_bytes
from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError
from pyiceberg.expressions import AlwaysTrue, And, BooleanExpression, EqualTo, GreaterThanOrEqual, LessThan
from pyiceberg.io import load_file_io
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table
from pyiceberg.types import PrimitiveType

from gateway.columnar.iceberg.arrow_types import arrow_schema
from gateway.columnar.iceberg.catalogue import open_catalogue
from gateway.columnar.reading.listed_file import TRACE, FiledSource, ListedFile, Period, SourceTable
from gateway.columnar.tables.iceberg_address import TRACE_TABLE, IcebergAddress, is_local, local_path
from gateway.kernel.errors import StorageError

#: Columns that each table of events and each one of messages has.
_OF_EVENTS: Final = frozenset(("vhost", "timestamp"))
_OF_MESSAGES: Final = frozenset(("vhost", "timestamp", "source", "source_name", "offset"))

#: The library's types are those of another constructor of these classes.
_Equal: Any = EqualTo
_AtLeast: Any = GreaterThanOrEqual
_Before: Any = LessThan


class IcebergFiles:
    """The data files of the tables at an address. A URI of a local file is its path."""

    def __init__(self, address: IcebergAddress) -> None:
        self._address = address
        self._catalogue = open_catalogue(address)

    def sources(self, vhost: str) -> Iterator[SourceTable]:
        """Yield the sources that have files, perhaps several times."""
        for name, table in self._tables(self._names()):
            for file in _files(table, _Equal("vhost", vhost)):
                source = _source_in(table, file, is_trace=name == TRACE_TABLE)
                if source is not None and source.vhost == vhost:
                    yield SourceTable(source, name)

    def files(self, source: FiledSource, period: Period, table: str) -> list[ListedFile]:
        """Return the files whose partition is the source, in the order of their URIs."""
        found = [
            _listed(opened, file)
            for opened in self._tables_of(source, [table] if table else self._names())
            for file in _files_of(opened, source, _within(period))
        ]
        return sorted(found, key=lambda each: each.file)

    def columns(self, source: FiledSource, table: str) -> pa.Schema | None:
        """Return the columns of a table, ``None`` if it has no rows of the source."""
        for opened in self._tables_of(source, [table]):
            if next(_files_of(opened, source, AlwaysTrue()), None) is not None:
                return arrow_schema(opened.schema())
        return None

    def _tables_of(self, source: FiledSource, names: Iterable[str]) -> Iterator[Table]:
        """Yield those of the named tables that may have rows of a source."""
        named = (name for name in names if (name == TRACE_TABLE) == (source.kind == TRACE))
        return (table for _, table in self._tables(named))

    def _tables(self, names: Iterable[str]) -> Iterator[tuple[str, Table]]:
        """Yield the tables of these names that exist. Foreign ones in the namespace are left out."""
        for name in names:
            table = self._table(name)
            if table is None:
                continue
            columns = set(table.schema().column_names)
            if columns >= (_OF_EVENTS if name == TRACE_TABLE else _OF_MESSAGES):
                yield name, table

    def _names(self) -> list[str]:
        try:
            return sorted(identifier[-1] for identifier in self._catalogue.list_tables(self._address.namespace))
        except NoSuchNamespaceError:
            return []

    def part(self, file: str, position: int, size: int) -> bytes:
        """Return bytes of a file. :raises FileNotFoundError: if it was removed."""
        io = load_file_io(self._catalogue.properties, file)
        with io.new_input(file).open(seekable=True) as opened:
            opened.seek(position)
            return bytes(opened.read(size))

    def _table(self, name: str) -> Table | None:
        try:
            return self._catalogue.load_table((self._address.namespace, name))
        except NoSuchTableError:
            return None


def _within(period: Period) -> BooleanExpression:
    return And(_AtLeast("timestamp", _time(period.since_ms)), _Before("timestamp", _time(period.until_ms)))


def _time(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat()


def _files_of(table: Table, source: FiledSource, wanted: BooleanExpression) -> Iterator[DataFile]:
    """Yield the files whose rows are all of a source, and may be wanted."""
    is_trace = source.kind == TRACE
    wanted = And(_Equal("vhost", source.vhost), wanted)
    if not is_trace:
        wanted = And(wanted, _Equal("source", source.kind), _Equal("source_name", source.name))
    for file in _files(table, wanted):
        if _source_in(table, file, is_trace=is_trace) == source:
            yield file


def _files(table: Table, wanted: BooleanExpression) -> Iterator[DataFile]:
    """Yield the files of a table that may have wanted rows."""
    for task in table.scan(row_filter=wanted).plan_files():
        if task.delete_files:
            raise StorageError(
                f"rows of {task.file.file_path} were deleted by another program: compact the table first"
            )
        yield task.file


def _partition(table: Table, file: DataFile) -> dict[str, Any]:
    """Return the values of a file's partition by field."""
    fields = table.metadata.specs()[file.spec_id].fields
    return {field.name: file.partition[position] for position, field in enumerate(fields)}


def _source_in(table: Table, file: DataFile, *, is_trace: bool) -> FiledSource | None:
    """Return the source of all rows of a file; ``None`` if its partition does not have it."""
    values = _partition(table, file)
    names = ("vhost",) if is_trace else ("vhost", "source", "source_name")
    if not all(isinstance(values.get(name), str) for name in names):
        return None
    return FiledSource(values["vhost"], *((TRACE, "") if is_trace else (values["source"], values["source_name"])))


def _listed(table: Table, file: DataFile) -> ListedFile:
    def bound(name: str, bounds: dict[int, bytes] | None) -> int | None:
        try:
            field = table.schema().find_field(name)
        except ValueError:  # the trace has no offsets
            return None
        encoded = (bounds or {}).get(field.field_id)
        assert isinstance(field.field_type, PrimitiveType)
        return None if encoded is None else int(from_bytes(field.field_type, encoded))

    first_us, last_us = bound("timestamp", file.lower_bounds), bound("timestamp", file.upper_bounds)
    first, last = bound("offset", file.lower_bounds), bound("offset", file.upper_bounds)
    return ListedFile(
        local_path(file.file_path) if is_local(file.file_path) else file.file_path,
        file.file_size_in_bytes,
        file.record_count,
        first,
        None if last is None else last + 1,
        None if first_us is None else first_us // 1000,
        None if last_us is None else -(-last_us // 1000),
    )
