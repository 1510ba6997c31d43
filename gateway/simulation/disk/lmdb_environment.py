"""A simulated environment of LMDB, with the part of py-lmdb's interface that the store uses.

A commit consists of steps, between which other threads run and a kill or a loss of power may come: writing pages,
syncing them, writing the root, syncing it. The commit is visible once its root is written, and durable once it is
synced.
"""

from collections.abc import Callable
from errno import EIO
from typing import Final

from gateway.simulation.disk.lmdb_errors import MAP_FULL, NOT_FOUND, PANIC, TOO_MANY_TABLES, closed, error, system_error
from gateway.simulation.disk.lmdb_file import LmdbFile
from gateway.simulation.disk.lmdb_transaction import SimulatedTable, SimulatedTransaction
from gateway.simulation.disk.steps import Steps
from gateway.simulation.disk.tables import PAGE_SIZE

_COMMIT: Final = "mdb_txn_commit"


class SimulatedEnvironment:
    """An open environment of one process.

    :param steps: the steps of the process.
    :param copy: writes a copy of a file into a directory.
    :param syncs: whether each commit is synced.
    """

    def __init__(
        self,
        steps: Steps,
        file: LmdbFile,
        map_size: int,
        max_dbs: int,
        copy: Callable[[LmdbFile, str], None],
        *,
        syncs: bool,
    ) -> None:
        self._steps = steps
        self._copy = copy
        self._file = file
        self._map_size = map_size
        self._max_tables = max_dbs
        self._syncs = syncs
        self._open: list[SimulatedTransaction] = []
        self._is_writing = False
        self._is_closed = False
        self._has_panicked = False

    def begin(
        self, db: SimulatedTable | None = None, *, write: bool = False, buffers: bool = False
    ) -> SimulatedTransaction:
        """Begin a transaction."""
        self._require_usable("mdb_txn_begin")
        self._steps.pause()
        self._require_usable("mdb_txn_begin")
        if write and self._is_writing:
            raise RuntimeError("a second transaction would write at the same time: LMDB would wait for ever")
        self._is_writing |= write
        transaction = SimulatedTransaction(
            self._file.latest,
            self._commit if write else None,
            lambda: self._ended(transaction, write),
            buffers=buffers,
            table=db,
        )
        self._open.append(transaction)
        return transaction

    def _ended(self, transaction: SimulatedTransaction, write: bool) -> None:
        self._open.remove(transaction)
        if write:
            self._is_writing = False

    def open_db(self, key: bytes, txn: SimulatedTransaction | None = None, *, create: bool = True) -> SimulatedTable:
        """Open a table, and create it if it does not exist."""
        self._require_usable("mdb_dbi_open")
        if txn is None:
            with self.begin(write=create) as own:
                return self.open_db(key, own, create=create)
        if key not in txn.tables:
            if not create:
                raise error("mdb_dbi_open", NOT_FOUND)
            if len(txn.tables) >= self._max_tables:
                raise error("mdb_dbi_open", TOO_MANY_TABLES)
            txn.create(key)
        return SimulatedTable(key)

    def stat(self) -> dict[str, int]:
        """Return the numbers of the table of tables."""
        self._require_usable("mdb_env_stat")
        pages = 1 if self._file.latest.tables else 0
        return {
            "psize": PAGE_SIZE,
            "depth": pages,
            "branch_pages": 0,
            "leaf_pages": pages,
            "overflow_pages": 0,
            "entries": len(self._file.latest.tables),
        }

    def info(self) -> dict[str, int]:
        """Return the numbers of the environment."""
        self._require_usable("mdb_env_info")
        latest = self._file.latest
        return {"map_size": self._map_size, "last_pgno": latest.last_page, "last_txnid": latest.number}

    def set_mapsize(self, map_size: int) -> None:
        """Set the maximum size; no transaction may be open."""
        self._require_usable("mdb_env_set_mapsize")
        if self._open:
            raise RuntimeError("the map was resized during a transaction")
        self._map_size = map_size

    def copy(self, path: str, *, compact: bool = False) -> None:
        """Write a copy of the current state into a directory. It is not synced."""
        self._require_usable("mdb_env_copy")
        self._copy(self._file, path)

    def sync(self, force: bool = False) -> None:
        """Make everything committed durable."""
        self._require_usable("mdb_env_sync")
        if self._syncs or force:
            fault = self._steps.sync("lmdb sync all")
            if fault:
                raise system_error("mdb_env_sync", fault)
            self._steps.synced(self._file.sync)

    def close(self) -> None:
        """Close the environment; no transaction may be open."""
        self._is_closed = True

    # Committing

    def _commit(self, transaction: SimulatedTransaction) -> None:
        file = self._file
        changed = list(transaction.changed.values())
        oldest = min(each.root.number for each in self._open)
        root = file.next_root(transaction.tables, changed, oldest)
        for table in changed:
            table.put_bytes = table.put_pages = table.deletes = 0
        if (root.last_page + 1) * PAGE_SIZE > self._map_size:
            raise error(_COMMIT, MAP_FULL)
        new_pages = max(0, root.last_page + 1 - file.page_count)
        self._steps.step("lmdb write")
        fault = self._steps.space_fault(new_pages)
        if fault:
            raise system_error(_COMMIT, fault)
        file.page_count += new_pages
        if self._syncs:
            fault = self._steps.sync("lmdb sync")
            if fault:
                raise system_error(_COMMIT, fault)
        self._steps.step("lmdb root")
        if self._syncs and self._steps.takes_failure():
            self._has_panicked = True
            raise system_error(_COMMIT, EIO)
        file.roots.append(root)
        if self._syncs:
            self._steps.sync("lmdb sync root", may_fail=False)
            self._steps.synced(file.sync)

    def _require_usable(self, what: str) -> None:
        if self._is_closed:
            raise closed()
        if self._has_panicked:
            raise error(what, PANIC)
