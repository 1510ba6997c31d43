"""Commits of sealed segments to an Iceberg table, each exactly once (docs/adr/0029-the-archive-as-an-iceberg-table.md).

One commit adds the rows of a segment and its identity, so a repeated request finds the identity and adds nothing.
"""

import time
from collections.abc import Callable, Collection, Iterable
from typing import Final, NamedTuple

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table

from gateway.columnar.encoding.envelope_columns import text
from gateway.columnar.encoding.pieces import Piece
from gateway.columnar.iceberg.catalogue import open_catalogue, open_table, unretried
from gateway.columnar.iceberg.data_files import remove_data_files, write_data_files
from gateway.columnar.iceberg.segment import FILED, Segment, filed_identities, with_identities
from gateway.columnar.iceberg.snapshots import expire_oldest
from gateway.columnar.iceberg.transaction import KeepingTransaction
from gateway.columnar.iceberg.version_hint import write_hint
from gateway.columnar.tables.iceberg_address import TRACE_TABLE, IcebergAddress
from gateway.kernel.errors import StorageError

#: A copy of a table older than this is loaded again, in seconds: its files may be removed after expiry.
_LONGEST_KEPT_S: Final = 60.0

#: Commits tried while other writers are faster.
_MOST_TRIES: Final = 20


Rows = Callable[[Table], Iterable[Piece]]
"""Returns the rows of a segment, for a table with its current columns."""


class FiledSegment(NamedTuple):
    """A segment in a table: the locations of its files, and the table as of a commit that has it.

    ``is_new`` is false if the table had the segment before; ``files`` is empty then.
    """

    files: list[str]
    table: Table
    is_new: bool


class SegmentCommits:
    """Adds segments to the tables at one address. Keeps each table as of its last commit, for a minute."""

    def __init__(self, address: IcebergAddress) -> None:
        self._address = address
        self._catalogue: Catalog | None = None
        self._tables: dict[str, tuple[pa.Schema, Table]] = {}
        self._loaded_s: dict[str, float] = {}

    def file(self, name: str, schema: pa.Schema, segment: Segment, rows: Rows) -> FiledSegment:
        """Add the rows of a segment to a table with at least these columns, unless they are in it.

        After an error the outcome is unknown, and a repetition finds it out.
        """
        try:
            return self._filed(name, schema, segment, rows)
        except BaseException:
            self._forget(name)
            raise

    def has(self, name: str, schema: pa.Schema, segment: Segment) -> bool:
        """Return whether a table has a segment; its hint is right then."""
        try:
            table = self._reloaded(name, schema)
            if not _is_filed(table, segment):
                return False
            write_hint(table)
        except BaseException:
            self._forget(name)
            raise
        return True

    def _forget(self, name: str) -> None:
        self._tables.pop(name, None)
        self._catalogue = None

    def _filed(self, name: str, schema: pa.Schema, segment: Segment, rows: Rows) -> FiledSegment:
        table = self._table(name, schema)
        if _is_filed(table, segment):
            write_hint(table)
            return FiledSegment([], table, is_new=False)
        stem = f"{segment.identity}-{segment.first:020}-{segment.end:020}"
        files = write_data_files(table, rows(table), stem, _constants(name, segment))
        spec_id = table.spec().spec_id
        for _ in range(_MOST_TRIES):
            try:
                _commit(table, segment, files)
            except CommitFailedException:  # another writer was first: certainly not committed
                table = self._reloaded(name, schema)
                if _is_filed(table, segment):
                    remove_data_files(table, files)
                    return FiledSegment([], table, is_new=False)
                if table.spec().spec_id != spec_id:
                    break
                continue
            expire_oldest(table, self._address.snapshots)
            write_hint(table)
            return FiledSegment([file.file_path for file in files], table, is_new=True)
        remove_data_files(table, files)
        raise StorageError(f"other writers of the table {name} were faster {_MOST_TRIES} times, or changed partitions")

    def _table(self, name: str, schema: pa.Schema) -> Table:
        if name in self._tables and time.monotonic() - self._loaded_s[name] < _LONGEST_KEPT_S:
            evolved_to, table = self._tables[name]
            if evolved_to is schema:
                return unretried(table)
        return self._reloaded(name, schema)

    def _reloaded(self, name: str, schema: pa.Schema) -> Table:
        if self._catalogue is None:
            self._catalogue = open_catalogue(self._address)
        self._loaded_s[name] = time.monotonic()
        table = unretried(open_table(self._catalogue, self._address, name, schema))
        self._tables[name] = schema, table
        return table


def _is_filed(table: Table, segment: Segment) -> bool:
    return segment.identity in filed_identities(table.properties)


def _constants(table: str, segment: Segment) -> dict[str, str]:
    vhost = {"vhost": text(segment.vhost)}
    if table == TRACE_TABLE:
        return vhost
    return {**vhost, "source": segment.source, "source_name": text(segment.name)}


def _commit(table: Table, segment: Segment, files: Collection[DataFile]) -> None:
    with KeepingTransaction(table) as transaction:
        transaction.set_properties({FILED: with_identities(table.properties, [segment.identity])})
        if not files:
            return  # a typed table that accepts no row of the segment
        with transaction.update_snapshot(snapshot_properties=segment.summary()).merge_append() as append:
            for file in files:
                append.append_data_file(file)
