"""Transactions whose cost does not multiply with the number of snapshots."""

from pyiceberg.table import Table, Transaction
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import TableUpdate


class KeepingTransaction(Transaction):
    """A transaction that keeps its metadata until it has further updates.

    The library copies the metadata with all snapshots each time that it reads it, some 15 times for a commit.
    """

    def __init__(self, table: Table) -> None:
        super().__init__(table)
        self._kept: tuple[TableMetadata, tuple[TableUpdate, ...], TableMetadata] | None = None

    @property
    def table_metadata(self) -> TableMetadata:
        """The metadata with the updates so far; not to be changed."""
        base, updates = self._table.metadata, self._updates
        if self._kept is None or self._kept[0] is not base or self._kept[1] is not updates:
            self._kept = base, updates, super().table_metadata
        return self._kept[2]
