"""Inspection of the pages of ``data.mdb`` before LMDB maps them: a missing page would end the process by a signal.

The layout is LMDB's (``mdb.c``: MDB_page, MDB_meta, MDB_db, MDB_node) on 64-bit little-endian machines; on others
nothing is inspected.
"""

import os
import struct
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from gateway.kernel.errors import StorageError

_MAGIC: Final = 0xBEEFC0DE
_VERSION: Final = 1
_NO_PAGE: Final = 2**64 - 1

_PAGE: Final = struct.Struct("<QHHHH")
_META: Final = struct.Struct("<IIQQ")
_TABLE: Final = struct.Struct("<IHHQQQQQ")
_NODE: Final = struct.Struct("<HHHH")
_POINTER: Final = struct.Struct("<H")
_NUMBER: Final = struct.Struct("<Q")

_TABLES_AT: Final = _PAGE.size + _META.size
_LAST_PAGE_AT: Final = _TABLES_AT + 2 * _TABLE.size
_META_SIZE: Final = _LAST_PAGE_AT + 2 * _NUMBER.size

_BRANCH: Final = 0x01
_LEAF: Final = 0x02
_OVERFLOW: Final = 0x04
_IS_META: Final = 0x08

_BIG_VALUE: Final = 0x01
_SUB_TABLE: Final = 0x02

_DEEPEST: Final = 32

#: Tables with small values, which refer to no other page.
_FLAT_TABLES: Final = frozenset({b"enqueued", b"streams"})

#: Tables whose values are read on demand: reading all of their leaves would make a start slow.
_LARGE_TABLES: Final = frozenset({b"contents", b"spilled", b"chunks"})

_IS_KNOWN_LAYOUT: Final = sys.byteorder == "little" and sys.maxsize > 2**32


class _Meta(NamedTuple):
    page_size: int
    roots: tuple[tuple[int, int], tuple[int, int]]
    last_page: int
    transaction: int


class _Damaged(Exception):
    """A page has invalid content."""


def require_whole(file: Path) -> None:
    """Check every page that a start reads, and all pages if some are missing at the end.

    A file may be shorter than its last page number implies, because pages freed within one transaction are never
    written. It is damaged only if a missing page is referenced.

    :raises StorageError: with the damage in one line.
    """
    _inspect(file, _inspect_start)


def require_sound(file: Path) -> int:
    """Check every page in use; return their number. :raises StorageError: as ``require_whole`` does."""
    return _inspect(file, lambda pages: sum(1 for _ in pages.walk()))


def _inspect(file: Path, check: "Callable[[_Pages], int]") -> int:
    if not _IS_KNOWN_LAYOUT:
        return 0
    with file.open("rb") as opened:
        size = os.fstat(opened.fileno()).st_size
        if size == 0:
            return 0  # LMDB initialises an empty file
        try:
            return check(_Pages(opened.fileno(), size))
        except _Damaged as damage:
            raise StorageError(
                f"the store in {file.parent} cannot be opened: {file.name} is damaged: {damage}"
            ) from None
        except struct.error:
            raise StorageError(
                f"the store in {file.parent} cannot be opened: {file.name} is damaged: a page is incomplete"
            ) from None


def _inspect_start(pages: "_Pages") -> int:
    is_short = pages.size < (pages.meta.last_page + 1) * pages.meta.page_size
    return sum(1 for _ in pages.walk(frozenset() if is_short else _LARGE_TABLES))


@dataclass
class _Pages:
    """The pages of one file."""

    descriptor: int
    size: int

    def __post_init__(self) -> None:
        first = self._meta(0)
        if first is None:
            raise _Damaged("it has no LMDB header: it is not a store, or was overwritten")
        second = self._meta(first.page_size)
        if second is None:
            raise _Damaged("its second page is missing or invalid")
        self.meta = max(first, second, key=lambda meta: meta.transaction)

    def _meta(self, at: int) -> _Meta | None:
        data = os.pread(self.descriptor, _META_SIZE, at)
        if len(data) < _META_SIZE:
            return None
        _, _, flags, _, _ = _PAGE.unpack_from(data)
        magic, version, _, _ = _META.unpack_from(data, _PAGE.size)
        page_size, _, free_depth, *_, free_root = _TABLE.unpack_from(data, _TABLES_AT)
        _, _, main_depth, *_, main_root = _TABLE.unpack_from(data, _TABLES_AT + _TABLE.size)
        roots = (free_root, free_depth), (main_root, main_depth)
        (last_page,) = _NUMBER.unpack_from(data, _LAST_PAGE_AT)
        (transaction,) = _NUMBER.unpack_from(data, _LAST_PAGE_AT + _NUMBER.size)
        is_ours = flags & _IS_META and magic == _MAGIC and version == _VERSION
        is_sane = page_size in (2**power for power in range(9, 17))
        return _Meta(page_size, roots, last_page, transaction) if is_ours and is_sane else None

    def walk(self, unread: frozenset[bytes] = frozenset()) -> Iterator[int]:
        """Check every page in use, and yield their numbers; check only the branches of ``unread`` tables."""
        for root, depth in self.meta.roots:
            yield from self._walk(root, depth, unread, True)

    def _walk(
        self, number: int, depth: int, unread: frozenset[bytes], reads_leaves: bool, is_flat: bool = False
    ) -> Iterator[int]:
        if number == _NO_PAGE:
            return
        if not 1 <= depth <= _DEEPEST:
            raise _Damaged(f"a tree has {depth} levels, at most {_DEEPEST} are valid")
        yield number
        if depth == 1 and not reads_leaves:
            self._require_there(number, 1)
            return
        page = self._page(number)
        if bool(page.flags & _BRANCH) != (depth > 1):
            raise _Damaged(f"page {number} is not of the expected kind")
        if depth > 1:
            for child in page.children():
                yield from self._walk(child, depth - 1, unread, reads_leaves, is_flat)
            return
        if is_flat:
            return
        for name, root, levels in page.sub_tables():
            yield from self._walk(root, levels, unread, name not in unread, name in _FLAT_TABLES)
        for first, size in page.big_values():
            self._require_there(first, (_PAGE.size + size + self.meta.page_size - 1) // self.meta.page_size)
            yield first

    def _page(self, number: int) -> "_Page":
        self._require_there(number, 1)
        data = os.pread(self.descriptor, self.meta.page_size, number * self.meta.page_size)
        own, _, flags, lower, upper = _PAGE.unpack_from(data)
        is_sane = flags & (_BRANCH | _LEAF) and _PAGE.size <= lower <= upper <= self.meta.page_size
        if own != number or not is_sane:
            raise _Damaged(f"page {number} has an invalid header")
        return _Page(number, data, flags, (lower - _PAGE.size) // _POINTER.size)

    def _require_there(self, number: int, count: int) -> None:
        if number > self.meta.last_page:
            raise _Damaged(f"a page refers to page {number}, which is after the last one")
        if (number + count) * self.meta.page_size > self.size:
            raise _Damaged(f"it has {self.size} bytes, and page {number} is missing: it was truncated")


@dataclass
class _Page:
    """A page of a tree: branches refer to pages, leaves hold values."""

    number: int
    data: bytes
    flags: int
    count: int

    def _nodes(self) -> Iterator[tuple[int, int, int, int, int]]:
        for index in range(self.count):
            (at,) = _POINTER.unpack_from(self.data, _PAGE.size + index * _POINTER.size)
            if not _PAGE.size <= at <= len(self.data) - _NODE.size:
                raise _Damaged(f"page {self.number} has an invalid node")
            yield at, *_NODE.unpack_from(self.data, at)

    def children(self) -> Iterator[int]:
        """Yield the pages that a branch refers to."""
        for _, low, high, flags, _ in self._nodes():
            yield low | high << 16 | flags << 32

    def sub_tables(self) -> Iterator[tuple[bytes, int, int]]:
        """Yield name, root page and depth of each table in a leaf."""
        for at, _, _, flags, key_size in self._nodes():
            if flags & _SUB_TABLE:
                value = at + _NODE.size + key_size
                _, _, depth, *_, root = _TABLE.unpack_from(self.data, value)
                yield self.data[at + _NODE.size : value], root, depth

    def big_values(self) -> Iterator[tuple[int, int]]:
        """Yield first page and size of the values that do not fit into the leaf."""
        for at, low, high, flags, key_size in self._nodes():
            if flags & _BIG_VALUE:
                yield _NUMBER.unpack_from(self.data, at + _NODE.size + key_size)[0], low | high << 16
