"""Commits that remove data files of a table, or replace them by others, while a broker adds files."""

from collections.abc import Collection, Mapping

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException, ValidationException
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table, Transaction
from pyiceberg.table.update.snapshot import _OverwriteFiles

from gateway.columnar.iceberg.catalogue import unretried
from gateway.columnar.iceberg.transaction import KeepingTransaction
from gateway.kernel.errors import StorageError

#: Commits tried while other writers are faster.
_MOST_TRIES = 50


def _overwrite(transaction: Transaction, summary: Mapping[str, str]) -> _OverwriteFiles:
    return transaction.update_snapshot(snapshot_properties=dict(summary)).overwrite()


def replace_files(
    catalogue: Catalog,
    table: Table,
    removed: Collection[DataFile],
    added: Collection[DataFile],
    summary: Mapping[str, str],
) -> Table:
    """Remove files and add others in one commit; return the table as of that commit.

    :raises StorageError: if another writer has removed one of the files, or is always faster. Nothing is changed then.
    """
    for _ in range(_MOST_TRIES):
        unretried(table)
        try:
            with KeepingTransaction(table) as transaction, _overwrite(transaction, summary) as update:
                for file in removed:
                    update.delete_data_file(file)
                for file in added:
                    update.append_data_file(file)
        except CommitFailedException:  # certainly not committed
            table = catalogue.load_table(table.name())
            continue
        except ValidationException as error:
            raise StorageError(f"another writer has removed files of the table: {error}") from None
        return table
    raise StorageError(f"other writers of the table were faster {_MOST_TRIES} times")
