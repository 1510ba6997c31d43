"""The LMDB environment of one directory, owned by one process, with bounded resident memory."""

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

#: The data file, which holds everything except stream files.
FILE: Final = "data.mdb"

#: LMDB's reader table.
LOCK: Final = "lock.mdb"

#: LMDB's usual page size, for an estimate.
_USUAL_PAGE: Final = 4096

#: The approximate number of pages in use besides those of the tables.
_OTHER_PAGES: Final = 4

#: Address space, not disk space: the file grows with its content.
DEFAULT_MAP_SIZE: Final = 1 << 40

#: Pages read through the map count as the process's memory until they are unmapped (see ``trim``).
_MOST_BYTES_MAPPED: Final = 32 * 1024 * 1024

#: The minimum memory mapped by reading one record, and by a transaction: the system maps neighbouring pages too.
RECORD_SEEN: Final = 4 * 1024
TRANSACTION_SEEN: Final = 256 * 1024


class Usage(NamedTuple):
    """The size of the file, and of its used pages, in bytes."""

    file_bytes: int
    used_bytes: int

    @property
    def free_bytes(self) -> int:
        """The bytes that a compaction would free."""
        return self.file_bytes - self.used_bytes


class Environment:
    """One open LMDB environment.

    ``write`` is called by the writer thread only, ``read`` by any thread but never inside another ``read``.

    :raises StorageError: when another process, or another store of this one, has opened the directory, when the files
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
                opened.callback(os.close, _lock_directory(path))
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
        """Return a write transaction, committed and synced when its ``with`` block ends without an exception."""
        return self._lmdb.begin(write=True)

    @contextmanager
    def read(self) -> Iterator[Transaction]:
        """Return a read transaction. :raises StorageError: when the files cannot be read."""
        try:
            with self._reading, self._lmdb.begin() as transaction:
                yield transaction
        except lmdb.Error as error:
            raise StorageError(f"the store cannot be read: {error}") from error

    @contextmanager
    def view(self) -> "Iterator[lmdb.Transaction[memoryview]]":
        """Return a read transaction whose values are views of the mapped memory, valid during the block.

        :raises StorageError: when the files cannot be read.
        """
        try:
            with self._reading, self._lmdb.begin(buffers=True) as transaction:
                yield transaction
        except lmdb.Error as error:
            raise StorageError(f"the store cannot be read: {error}") from error

    def count_read(self, size: int) -> bool:
        """Count bytes read through the map; return whether ``trim`` is due.

        The count is approximate: two threads update it without a lock.
        """
        self._bytes_seen += size
        return self._bytes_seen > _MOST_BYTES_MAPPED

    def trim(self) -> None:
        """Unmap the pages that were read, if they are many; called on the writer thread, between transactions.

        Setting the map's size, even to the same value, maps the file again. Without this, a backlog of a gigabyte would
        count as resident memory once it was written or read, although it is only page cache.
        """
        if self._bytes_seen > _MOST_BYTES_MAPPED:
            with self._reading:
                self._lmdb.set_mapsize(self._map_size)
            self._bytes_seen = 0

    def snapshot(self, directory: Path) -> None:
        """Write a compact copy of the durable data into an empty directory, while the store is in use."""
        with self._reading:
            self._lmdb.copy(str(directory), compact=True)

    @property
    def file_bytes(self) -> int:
        """The size of the file, on the writer's thread."""
        return (int(self._lmdb.info()["last_pgno"]) + 1) * _USUAL_PAGE

    def usage(self) -> Usage:
        """Measure the file. Reads only the head of each table."""
        with self.read() as transaction:
            heads = [transaction.stat(table) for table in self.tables.all()]
            page_size = self._lmdb.stat()["psize"]
            file_pages = self._lmdb.info()["last_pgno"] + 1
        used = sum(head["branch_pages"] + head["leaf_pages"] + head["overflow_pages"] for head in heads)
        return Usage(file_pages * page_size, min(used + _OTHER_PAGES, file_pages) * page_size)

    def replace_file(self, file: Path) -> None:
        """Replace the file with another one of the same content, on the writer's thread.

        :raises OSError: when it cannot be replaced; the current file stays in use.
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
                # another program may hold the old pair of files; numbers in the old lock must not be used with the new
                # data
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
        """Close the files. No transaction may be open."""
        self._opened.close()

    def _close_lmdb(self) -> None:
        self._lmdb.close()


def _lock_directory(path: Path) -> int:
    """Lock the directory for this process; the system releases the lock when the descriptor is closed."""
    descriptor = os.open(path / "owner.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        owner = os.read(descriptor, 20).decode(errors="replace").strip() or "unknown"
        os.close(descriptor)
        raise StorageError(f"the store in {path} is in use by process {owner}: stop it first") from None
    with suppress(OSError):  # on a full disk the lock has no process id
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n".encode())
    return descriptor


def _open(path: Path, map_size: int) -> lmdb.Environment:
    return lmdb.open(
        str(path),
        map_size=map_size,
        max_dbs=MAX_TABLES,
        mode=0o600,
        readahead=False,  # reads are by key; read-ahead would waste memory
        meminit=False,  # zeroing each page before writing it is not needed
        max_spare_txns=1,  # each call of ``read`` begins a transaction
    )


def sync_directories(path: Path) -> None:
    """Sync the directory entries of new files; LMDB syncs only their content."""
    for directory in (path, path.parent):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
