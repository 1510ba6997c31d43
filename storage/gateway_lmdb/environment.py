"""The LMDB files of one directory, owned by one process, with its resident memory kept in bounds."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Final, NamedTuple

import lmdb

from gateway.kernel.errors import StorageError
from gateway_lmdb.inspection import require_whole
from gateway_lmdb.schema import MAX_TABLES, Tables, Transaction, open_tables

#: What holds everything but files of streams.
FILE: Final = "data.mdb"

#: What LMDB keeps about who reads.
LOCK: Final = "lock.mdb"

#: LMDB's page, for a rough count.
_USUAL_PAGE: Final = 4096

#: About how many pages are used besides those of the tables.
_OTHER_PAGES: Final = 4

#: Address space, not disk: the file is as large as what it holds.
DEFAULT_MAP_SIZE: Final = 1 << 40

#: Pages seen through the map count as the process's memory until they are unmapped (see ``trim``).
_MOST_BYTES_MAPPED: Final = 32 * 1024 * 1024

#: What a look at one record maps at least, and a transaction: the system maps neighbouring pages along.
RECORD_SEEN: Final = 4 * 1024
TRANSACTION_SEEN: Final = 256 * 1024


class Usage(NamedTuple):
    """The bytes of the file, and those of them that hold something."""

    file_bytes: int
    used_bytes: int

    @property
    def free_bytes(self) -> int:
        """What a compaction would give back."""
        return self.file_bytes - self.used_bytes


class Environment:
    """One open LMDB environment.

    ``write`` is called by the writer thread alone, ``read`` by any thread but never from inside another ``read``.

    :raises StorageError: when another process, or another store of this one, has the directory open, when the files
        cannot be used, or when a newer gateway wrote them.
    """

    def __init__(self, path: Path, map_size: int = DEFAULT_MAP_SIZE) -> None:
        self.path = path
        self._map_size = map_size
        self._reading = Lock()
        self._bytes_seen = 0
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            with ExitStack() as opened:
                opened.callback(os.close, _own(path))
                is_new = not (path / FILE).exists()
                if not is_new:
                    require_whole(path / FILE)
                self._lmdb = _open(path, map_size)
                opened.callback(self._close_lmdb)
                self.tables: Tables = open_tables(self._lmdb)
                if is_new:
                    sync_directories(path)
                self._opened = opened.pop_all()
        except (OSError, lmdb.Error) as error:
            raise StorageError(f"the store in {path} cannot be opened: {error}") from error

    def write(self) -> AbstractContextManager[Transaction]:
        """Return a transaction that is on disk once its ``with`` block has ended without an exception."""
        return self._lmdb.begin(write=True)

    @contextmanager
    def read(self) -> Iterator[Transaction]:
        """Hold one state of the store for reading. :raises StorageError: when the files cannot be read."""
        try:
            with self._reading, self._lmdb.begin() as transaction:
                yield transaction
        except lmdb.Error as error:
            raise StorageError(f"the store cannot be read: {error}") from error

    @contextmanager
    def view(self) -> "Iterator[lmdb.Transaction[memoryview]]":
        """Hold one state of the store for a look at the memory it is mapped to: no longer than the block lasts.

        :raises StorageError: when the files cannot be read.
        """
        try:
            with self._reading, self._lmdb.begin(buffers=True) as transaction:
                yield transaction
        except lmdb.Error as error:
            raise StorageError(f"the store cannot be read: {error}") from error

    def saw(self, size: int) -> bool:
        """Count bytes seen through the map; say whether it is time to ``trim``.

        A rough count, a page more or less: two threads add to it without a lock.
        """
        self._bytes_seen += size
        return self._bytes_seen > _MOST_BYTES_MAPPED

    def trim(self) -> None:
        """Unmap what was seen, if it is much: by the writer thread, between two transactions.

        Setting the map's size, even to what it was, maps the file anew. Without this a backlog of a gigabyte would
        count as a gigabyte of resident memory once it was written or read, although it is only page cache.
        """
        if self._bytes_seen > _MOST_BYTES_MAPPED:
            with self._reading:
                self._lmdb.set_mapsize(self._map_size)
            self._bytes_seen = 0

    def snapshot(self, directory: Path) -> None:
        """Write a compact copy of what is durable into an empty directory, while the store is in use."""
        with self._reading:
            self._lmdb.copy(str(directory), compact=True)

    @property
    def file_bytes(self) -> int:
        """The bytes of the file; on the writer's thread."""
        return (int(self._lmdb.info()["last_pgno"]) + 1) * _USUAL_PAGE

    def usage(self) -> Usage:
        """Measure the file. Costs no more than a look at the head of each table."""
        with self.read() as transaction:
            heads = [transaction.stat(table) for table in self.tables.all()]
            page_size = self._lmdb.stat()["psize"]
            file_pages = self._lmdb.info()["last_pgno"] + 1
        used = sum(head["branch_pages"] + head["leaf_pages"] + head["overflow_pages"] for head in heads)
        return Usage(file_pages * page_size, min(used + _OTHER_PAGES, file_pages) * page_size)

    def adopt(self, file: Path) -> None:
        """Go on with another file, which holds all that this one does; on the writer's thread.

        :raises OSError: when it cannot take the place of this one, which is used on then.
        :raises StorageError: when the store cannot be used any more.
        """
        with self._reading:
            self._lmdb.close()
            try:
                os.replace(file, self.path / FILE)
            except OSError:
                self._reopen()
                raise
            try:
                # Another program may hold the old pair of files; numbers of the old lock must not meet the new data.
                (self.path / LOCK).unlink(missing_ok=True)
                sync_directories(self.path)
                self._reopen()
            except (OSError, lmdb.Error) as error:
                raise StorageError(f"the compacted store cannot be opened: {error}") from error
            self._bytes_seen = 0

    def _reopen(self) -> None:
        self._lmdb = _open(self.path, self._map_size)
        self.tables = open_tables(self._lmdb, keeps_spilled=True)

    def close(self) -> None:
        """Release the files. No transaction may be open."""
        self._opened.close()

    def _close_lmdb(self) -> None:
        self._lmdb.close()


def _own(path: Path) -> int:
    """Lock the directory for this process; the system gives the lock up when the descriptor closes or we die."""
    descriptor = os.open(path / "owner.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        owner = os.read(descriptor, 20).decode(errors="replace").strip() or "unknown"
        os.close(descriptor)
        raise StorageError(f"the store in {path} is in use by process {owner}") from None
    with suppress(OSError):  # on a full disk the lock alone has to do
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n".encode())
    return descriptor


def _open(path: Path, map_size: int) -> lmdb.Environment:
    return lmdb.open(
        str(path),
        map_size=map_size,
        max_dbs=MAX_TABLES,
        mode=0o600,
        readahead=False,  # reads are by key; reading ahead would fill memory with neighbours
        meminit=False,  # the file is ours alone, zeroing each page before it is written costs time
        max_spare_txns=1,  # messages() begins a read transaction each time
    )


def sync_directories(path: Path) -> None:
    """Make the names of new files durable; LMDB syncs only what is in them."""
    for directory in (path, path.parent):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
