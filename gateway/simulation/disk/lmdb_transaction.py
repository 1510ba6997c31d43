"""Transactions of a simulated LMDB environment, with the part of py-lmdb's interface that the store uses."""

from collections.abc import Callable
from typing import Any

from gateway.simulation.disk.lmdb_cursor import LONGEST_KEY, SimulatedCursor, require_key
from gateway.simulation.disk.lmdb_errors import BAD_SIZE, closed, error, system_error
from gateway.simulation.disk.lmdb_file import Root
from gateway.simulation.disk.tables import Table

_EMPTY = Table()


class SimulatedTable:
    """The handle of a table, as ``open_db`` returns it."""

    def __init__(self, name: bytes) -> None:
        self.name = name


class SimulatedTransaction:
    """A transaction on one state of the file.

    :param commit: commits the changes of a transaction that writes; ``None`` for one that reads.
    :param end: called once at the end, whatever it is.
    """

    def __init__(
        self,
        root: Root,
        commit: "Callable[[SimulatedTransaction], None] | None",
        end: Callable[[], None],
        *,
        buffers: bool = False,
        table: SimulatedTable | None = None,
    ) -> None:
        self.root = root
        self.tables = dict(root.tables) if commit is not None else root.tables
        self.changed: dict[bytes, Table] = {}
        self.has_changed_tables = False
        self._commit = commit
        self._end = end
        self._buffers = buffers
        self._default = b"" if table is None else table.name
        self._is_over = False

    def __enter__(self) -> "SimulatedTransaction":
        return self

    def __exit__(self, kind: object, *raised: object) -> None:
        if kind is None:
            self.commit()
        else:
            self.abort()

    def commit(self) -> None:
        """Write the changes."""
        if self._is_over:
            return
        try:
            if self._commit is not None and (self.changed or self.has_changed_tables):
                self._commit(self)
        finally:
            self.abort()

    def abort(self) -> None:
        """End without writing anything."""
        if not self._is_over:
            self._is_over = True
            self._end()

    # Reading

    def get(self, key: bytes, default: Any = None, db: SimulatedTable | None = None) -> Any:
        """Return a value, ``default`` without one."""
        require_key("mdb_get", key)
        value = self.table(self._name(db)).records.get(key)
        return default if value is None else self.shown(value)

    def stat(self, db: SimulatedTable) -> dict[str, int]:
        """Return the numbers of a table."""
        return self.table(db.name).stat()

    def cursor(self, db: SimulatedTable | None = None) -> SimulatedCursor:
        """Return a new cursor."""
        self._require_open()
        return SimulatedCursor(self, self._name(db))

    # Writing

    def put(
        self, key: bytes, value: Any, *, overwrite: bool = True, append: bool = False, db: SimulatedTable | None = None
    ) -> bool:
        """Put a record; return ``False`` if that is not allowed."""
        return self.put_in(self._name(db), "mdb_put", key, value, overwrite, append)

    def delete(self, key: bytes, db: SimulatedTable | None = None) -> bool:
        """Delete a record; return whether it was there."""
        name = self._name(db)
        self._require_writing("mdb_del")
        require_key("mdb_del", key)
        if key not in self.table(name).records:
            return False
        self.changing(name, "mdb_del").delete(key)
        return True

    def pop(self, key: bytes, db: SimulatedTable | None = None) -> Any:
        """Delete a record; return its value, ``None`` if it was not there."""
        value = self.get(key, db=db)
        if value is not None:
            self.delete(key, db=db)
        return value

    def drop(self, db: SimulatedTable, delete: bool = True) -> None:
        """Delete all records of a table, and with ``delete`` the table."""
        self._require_writing("mdb_drop")
        self.table(db.name)
        if delete:
            del self.tables[db.name]
            self.changed.pop(db.name, None)
            self.has_changed_tables = True
        elif self.tables[db.name].keys:
            self.tables[db.name] = self.changed[db.name] = Table()
            self.changed[db.name].version = -1

    # For cursors and the environment

    def shown(self, data: bytes) -> Any:
        """Return data as this transaction returns it."""
        return memoryview(data) if self._buffers else data

    def table(self, name: bytes) -> Table:
        """Return a table to be read."""
        self._require_open()
        return self.tables.get(name, _EMPTY)

    def create(self, name: bytes) -> None:
        """Create a table."""
        self._require_writing("mdb_dbi_open")
        self.tables[name] = Table()
        self.has_changed_tables = True

    def changing(self, name: bytes, what: str) -> Table:
        """Return a table to be changed."""
        table = self.changed.get(name)
        if table is None:
            self._require_writing(what)
            table = self.tables[name] = self.changed[name] = self.table(name).copy()
        elif self._is_over:
            raise closed()
        return table

    def put_in(self, name: bytes, what: str, key: bytes, value: Any, overwrite: bool, append: bool) -> bool:
        """Put a record into a table; return ``False`` if that is not allowed."""
        self._require_writing(what)
        if not 0 < len(key) <= LONGEST_KEY:
            raise error(what, BAD_SIZE)
        table = self.changing(name, what)
        if append:
            if table.keys and key <= table.keys[-1]:
                return False
        elif not overwrite and key in table.records:
            return False
        table.put(bytes(key), bytes(value))
        return True

    def _name(self, db: SimulatedTable | None) -> bytes:
        return self._default if db is None else db.name

    def _require_open(self) -> None:
        if self._is_over:
            raise closed()

    def _require_writing(self, what: str) -> None:
        self._require_open()
        if self._commit is None:
            raise system_error(what, 13)
