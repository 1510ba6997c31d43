"""Expiry of a table's rows and snapshots. Files stay until they are tidied up."""

from datetime import datetime
from typing import Final

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table

from gateway.columnar.iceberg.catalogue import unretried
from gateway.columnar.iceberg.live_files import live_files
from gateway.columnar.iceberg.replacements import replace_files
from gateway.columnar.iceberg.version_hint import write_hint
from gateway.kernel.errors import StorageError

_SUMMARY: Final = {"gateway.operation": "expire"}

#: Commits tried while other writers are faster.
_MOST_TRIES: Final = 50


def expire_rows(catalogue: Catalog, table: Table, before: datetime) -> tuple[Table, int]:
    """Remove the files whose rows are all older, in one commit; return the table and the number of files."""
    old = [live.file for live in live_files(table) if live.last_time is not None and live.last_time < before]
    if old:
        table = replace_files(catalogue, table, old, [], _SUMMARY)
        write_hint(table)
    return table, len(old)


def expire_snapshots(catalogue: Catalog, table: Table, before: datetime) -> int:
    """Remove older snapshots, except the current one and those of branches and tags; return their number.

    :raises StorageError: if other writers are always faster.
    """
    for _ in range(_MOST_TRIES):
        current = unretried(catalogue.load_table(table.name()))
        count = len(current.snapshots())
        try:
            current.maintenance.expire_snapshots().older_than(before).commit()
        except CommitFailedException:
            continue
        write_hint(current)
        return max(0, count - len(current.snapshots()))
    raise StorageError(f"other writers of the table were faster {_MOST_TRIES} times")
