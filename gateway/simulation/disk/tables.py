"""Tables of a simulated LMDB file: records in the order of their keys, with an estimate of their pages."""

from bisect import bisect_left, insort
from typing import Final

#: The size of a page of LMDB, in bytes.
PAGE_SIZE: Final = 4096

#: Records with a larger value have pages of their own.
_LARGEST_INLINE: Final = 2000

#: Bytes of a record beside key and value, and of a page beside its records.
_RECORD_OVERHEAD: Final = 10
_PAGE_OVERHEAD: Final = 16

#: Bytes of records in an average page: pages are split when they are full.
_USED_OF_PAGE: Final = 3000

#: Entries of a branch page.
_FAN_OUT: Final = 128


class Table:
    """Records by key. Those of a committed state never change: a transaction changes a copy.

    ``version`` counts the changes. ``put_bytes``, ``put_pages`` and ``deletes`` describe those of a copy.
    """

    __slots__ = ("deletes", "inline_bytes", "keys", "large_pages", "put_bytes", "put_pages", "records", "version")

    def __init__(self) -> None:
        self.records: dict[bytes, bytes] = {}
        self.keys: list[bytes] = []
        self.inline_bytes = 0
        self.large_pages = 0
        self.version = 0
        self.put_bytes = self.put_pages = self.deletes = 0

    def copy(self) -> "Table":
        """Return a copy to be changed."""
        copy = Table()
        copy.records = self.records.copy()
        copy.keys = self.keys.copy()
        copy.inline_bytes = self.inline_bytes
        copy.large_pages = self.large_pages
        copy.version = self.version + 1
        return copy

    def put(self, key: bytes, value: bytes) -> None:
        """Set a record."""
        records = self.records
        old = records.get(key)
        if old is None:
            keys = self.keys
            if not keys or key > keys[-1]:
                keys.append(key)
            else:
                insort(keys, key)
            self.version += 1
        else:
            self._count(key, old, -1)
        records[key] = value
        self._count(key, value, 1)

    def delete(self, key: bytes) -> bytes | None:
        """Delete a record; return its value."""
        value = self.records.pop(key, None)
        if value is not None:
            del self.keys[bisect_left(self.keys, key)]
            self._count(key, value, -1)
            self.deletes += 1
            self.version += 1
        return value

    def _count(self, key: bytes, value: bytes, sign: int) -> None:
        size = len(value)
        if size > _LARGEST_INLINE:
            pages = (size + _PAGE_OVERHEAD + PAGE_SIZE - 1) // PAGE_SIZE
            self.large_pages += sign * pages
            if sign > 0:
                self.put_pages += pages
            size = 8
        size += len(key) + _RECORD_OVERHEAD
        self.inline_bytes += sign * size
        if sign > 0:
            self.put_bytes += size

    # Pages

    @property
    def leaf_pages(self) -> int:
        """The number of pages with records."""
        return -(-self.inline_bytes // _USED_OF_PAGE)

    @property
    def branch_pages(self) -> int:
        """The number of pages above those with records."""
        pages, level = 0, self.leaf_pages
        while level > 1:
            level = -(-level // _FAN_OUT)
            pages += level
        return pages

    @property
    def pages(self) -> int:
        """The number of all pages."""
        return self.leaf_pages + self.branch_pages + self.large_pages

    @property
    def written_pages(self) -> int:
        """The number of pages that the changes of a copy write."""
        leaves = 2 + (self.put_bytes + 64 * self.deletes) // _USED_OF_PAGE
        return min(leaves, self.leaf_pages) + self.branch_pages // 2 + 1 + self.put_pages

    def stat(self) -> dict[str, int]:
        """Return the numbers that LMDB gives for a table."""
        leaves, branches = self.leaf_pages, self.branch_pages
        depth = 0 if not leaves else 1
        level = leaves
        while level > 1:
            level = -(-level // _FAN_OUT)
            depth += 1
        return {
            "psize": PAGE_SIZE,
            "depth": depth,
            "branch_pages": branches,
            "leaf_pages": leaves,
            "overflow_pages": self.large_pages,
            "entries": len(self.keys),
        }
