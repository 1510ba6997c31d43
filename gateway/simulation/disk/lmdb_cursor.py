"""Cursors of a simulated LMDB environment, with the part of py-lmdb's interface that the store uses."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Any, Final, Protocol

from gateway.simulation.disk.lmdb_errors import BAD_SIZE, closed, error
from gateway.simulation.disk.tables import Table

#: The longest key, in bytes.
LONGEST_KEY: Final = 511


class Tables(Protocol):
    """The transaction of a cursor, as the cursor uses it."""

    def shown(self, data: bytes) -> Any: ...  # noqa: D102

    def table(self, name: bytes) -> Table: ...  # noqa: D102

    def changing(self, name: bytes, what: str) -> Table: ...  # noqa: D102

    def put_in(self, name: bytes, what: str, key: bytes, value: Any, overwrite: bool, append: bool) -> bool: ...  # noqa: D102


class SimulatedCursor:
    """A position in a table. After a search that finds nothing, only an absolute move is allowed."""

    def __init__(self, transaction: Tables, name: bytes) -> None:
        self._transaction = transaction
        self._name = name
        self._key: bytes | None = None
        self._index = 0
        self._version = -1
        self._is_new = True
        self._is_closed = False

    def __enter__(self) -> "SimulatedCursor":
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the cursor."""
        self._is_closed = True

    # Reading

    def key(self) -> Any:
        """Return the key, empty without a record."""
        self._table()
        return self._transaction.shown(self._key or b"")

    def value(self) -> Any:
        """Return the value, empty without a record."""
        table = self._table()
        return self._transaction.shown(b"" if self._key is None else table.records[self._key])

    def item(self) -> tuple[Any, Any]:
        """Return key and value."""
        return self.key(), self.value()

    def iternext(self, keys: bool = True, values: bool = True) -> Iterator[Any]:
        """Yield keys, values or both, from the current record or the first one on."""
        found = self._key is not None or self.first()
        while found:
            yield self.item() if keys and values else self.key() if keys else self.value()
            found = self.next()

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        return self.iternext()

    # Moving

    def first(self) -> bool:
        """Move to the first record."""
        return self._move(self._table(), 0)

    def last(self) -> bool:
        """Move to the last record."""
        table = self._table()
        return self._move(table, len(table.keys) - 1)

    def next(self) -> bool:
        """Move to the next record; a new cursor to the first one."""
        table = self._table()
        if self._is_new:
            return self._move(table, 0)
        return self._move(table, self._current(table) + 1)

    def prev(self) -> bool:
        """Move to the previous record; a new cursor to the last one."""
        table = self._table()
        if self._is_new:
            return self._move(table, len(table.keys) - 1)
        return self._move(table, self._current(table) - 1)

    def set_key(self, key: bytes) -> bool:
        """Move to the record with a key."""
        table = self._table()
        require_key("mdb_cursor_get", key)
        is_there = key in table.records
        return self._move(table, bisect_left(table.keys, key) if is_there else -1)

    def set_range(self, key: bytes) -> bool:
        """Move to the first record with this key or a higher one."""
        table = self._table()
        return self._move(table, bisect_left(table.keys, key))

    def _move(self, table: Table, index: int) -> bool:
        self._is_new = False
        if 0 <= index < len(table.keys):
            self._key = table.keys[index]
            self._index = index
            self._version = table.version
            return True
        self._key = None
        return False

    def _current(self, table: Table) -> int:
        """Return the index of the record; it may have moved since."""
        if self._key is None:
            raise RuntimeError("a cursor without a record was moved to the next or previous one")
        if self._version != table.version:
            self._index = bisect_left(table.keys, self._key)
            self._version = table.version
        return self._index

    # Writing

    def delete(self) -> bool:
        """Delete the record, and move to the next one."""
        table = self._transaction.changing(self._name, "mdb_cursor_del") if self._key is not None else self._table()
        if self._key is None:
            return False
        index = self._current(table)
        table.delete(self._key)
        self._move(table, index)
        return True

    def put(self, key: bytes, value: Any, *, overwrite: bool = True, append: bool = False) -> bool:
        """Put a record, and move to it; return ``False`` if that is not allowed."""
        done = self._transaction.put_in(self._name, "mdb_cursor_put", key, value, overwrite, append)
        table = self._table()
        if done:
            self._move(table, bisect_left(table.keys, key))
        return done

    def putmulti(
        self, items: Iterable[tuple[bytes, Any]], *, overwrite: bool = True, append: bool = False
    ) -> tuple[int, int]:
        """Put records, and move to the last one; return how many were given, and how many were put."""
        given = added = 0
        key = None
        put_in, name = self._transaction.put_in, self._name
        for key, value in items:
            given += 1
            added += put_in(name, "mdb_cursor_put", key, value, overwrite, append)
        if key is not None:
            table = self._table()
            self._move(table, bisect_left(table.keys, key))
        return given, added

    def _table(self) -> Table:
        if self._is_closed:
            raise closed()
        return self._transaction.table(self._name)


def require_key(what: str, key: bytes) -> None:
    """Check a key that is looked for. :raises lmdb.BadValsizeError: when it is empty."""
    if not key:
        raise error(what, BAD_SIZE)
