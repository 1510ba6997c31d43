"""Commits of sealed segments to an Iceberg table, each exactly once (docs/adr/0029-the-archive-as-an-iceberg-table.md).

One commit adds the rows of a segment and its identity, so a repeated request finds the identity and adds nothing.
"""

import time
from collections.abc import Callable, Iterable
from typing import Final

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
from gateway.columnar.tables.iceberg_address import ARCHIVE_TABLE, IcebergAddress
from gateway.kernel.errors import StorageError

#: A copy of a table older than this is loaded again, in seconds: its files may be removed after expiry.
_LONGEST_KEPT_S: Final = 60.0

#: Commits tried while other writers are faster.
_MOST_TRIES: Final = 20


class SegmentCommits:
    """Adds segments to the tables at one address. Keeps each table as of its last commit, for a minute."""

    def __init__(self, address: IcebergAddress) -> None:
        self._address = address
        self._catalogue: Catalog | None = None
        self._tables: dict[str, Table] = {}
        self._loaded_s: dict[str, float] = {}

    def file(self, name: str, segment: Segment, pieces: Callable[[], Iterable[Piece]]) -> list[str]:
        """Add the rows of a segment to a table, unless they are in it; return the locations of their files.

        ``pieces`` returns the rows. After an error the outcome is unknown, and a repetition finds it out.
        """
        try:
            return self._filed(name, segment, pieces)
        except BaseException:
            self._tables.pop(name, None)
            self._catalogue = None
            raise

    def _filed(self, name: str, segment: Segment, pieces: Callable[[], Iterable[Piece]]) -> list[str]:
        table = self._table(name)
        if _is_filed(table, segment):
            write_hint(table)
            return []
        stem = f"{segment.identity}-{segment.first:020}-{segment.end:020}"
        files = write_data_files(table, pieces(), stem, _constants(name, segment))
        spec_id = table.spec().spec_id
        for _ in range(_MOST_TRIES):
            try:
                _commit(table, segment, files)
            except CommitFailedException:  # another writer was first: certainly not committed
                table = self._reloaded(name)
                if _is_filed(table, segment):
                    remove_data_files(table, files)
                    return []
                if table.spec().spec_id != spec_id:
                    break
                continue
            expire_oldest(table, self._address.snapshots)
            write_hint(table)
            return [file.file_path for file in files]
        remove_data_files(table, files)
        raise StorageError(f"other writers of the table {name} were faster {_MOST_TRIES} times, or changed partitions")

    def _table(self, name: str) -> Table:
        if name in self._tables and time.monotonic() - self._loaded_s[name] < _LONGEST_KEPT_S:
            return unretried(self._tables[name])
        return self._reloaded(name)

    def _reloaded(self, name: str) -> Table:
        if self._catalogue is None:
            self._catalogue = open_catalogue(self._address)
        self._loaded_s[name] = time.monotonic()
        self._tables[name] = unretried(open_table(self._catalogue, self._address, name))
        return self._tables[name]


def _is_filed(table: Table, segment: Segment) -> bool:
    return segment.identity in filed_identities(table.properties)


def _constants(table: str, segment: Segment) -> dict[str, str]:
    vhost = {"vhost": text(segment.vhost)}
    if table != ARCHIVE_TABLE:
        return vhost
    return {**vhost, "source": segment.source, "source_name": text(segment.name)}


def _commit(table: Table, segment: Segment, files: Iterable[DataFile]) -> None:
    with KeepingTransaction(table) as transaction:
        transaction.set_properties({FILED: with_identities(table.properties, [segment.identity])})
        with transaction.update_snapshot(snapshot_properties=segment.summary()).merge_append() as append:
            for file in files:
                append.append_data_file(file)
