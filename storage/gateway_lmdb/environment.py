"""The LMDB environment of one directory, owned by one process, with bounded resident memory."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from errno import EDQUOT, EFBIG, EIO, ENOMEM, ENOSPC
from pathlib import Path
from typing import Final, NamedTuple

import lmdb

from gateway.kernel.errors import StorageError
from gateway_lmdb import redo_log, redo_replay
from gateway_lmdb.disk import SYSTEM_DISK, Disk
from gateway_lmdb.schema import MAX_TABLES, Tables, Transaction, highest_number, open_tables, read_era, write_era
from gateway_lmdb.threads import SYSTEM_THREADS, Threads

#: The data file, which holds everything except stream files.
FILE: Final = "data.mdb"

#: LMDB's reader table.
LOCK: Final = "lock.mdb"

#: Temporary errors of the system: the transaction was rolled back and can be repeated. LMDB reports a short write, the
#: usual first sign of a full disk, as EIO; and a failed sync of data pages can be retried safely, because a retry
#: writes every page again instead of relying on the page cache.
PASSING_ERRORS: Final = frozenset({ENOSPC, EDQUOT, EFBIG, EIO, ENOMEM})

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

    ``write`` is called by the writer thread only, ``read`` by any thread but never inside another ``read``. ``disk``
    and ``threads`` are those of the whole store. ``bursts`` are those of the kernel's thread, which reads contents, and
    of the writer thread, which deletes them.

    :raises StorageError: when another process, or another store of this one, has opened the directory, when the files
    cannot be used, or when a newer gateway wrote them.
    """

    def __init__(
        self,
        path: Path,
        map_size: int = DEFAULT_MAP_SIZE,
        *,
        disk: Disk = SYSTEM_DISK,
        threads: Threads = SYSTEM_THREADS,
    ) -> None:
        self.path = path
        self.disk = disk
        self.threads = threads
        self._map_size = map_size
        self._reading = threads.lock()
        self.bursts = threads.bursts()
        self._bytes_seen = 0
        try:
            disk.make_directory(path, parents=True)
            with ExitStack() as opened:
                opened.callback(disk.lock(path))
                is_new = not disk.exists(path / FILE)
                if not is_new:
                    disk.require_whole(path / FILE)
                self._lmdb = self._open()
                opened.callback(self._close_lmdb)
                self._sync_remains(is_new)
                self.tables: Tables = open_tables(self._lmdb)
                redo_replay.replay(path, disk, self._lmdb, self.tables)
                self._opened = opened.pop_all()
        except (OSError, lmdb.Error) as error:
            raise StorageError(f"the store in {path} cannot be opened: {error}") from error

    def write(self) -> AbstractContextManager[Transaction]:
        """Return a write transaction, committed and synced when its ``with`` block ends without an exception."""
        return self._lmdb.begin(write=True)

    def empty_spilled(self) -> bool:
        """Delete the spilled contents of an earlier run, before this one spills; return whether that was possible.

        Contents that stay because the disk is full are replaced by those with their numbers, or deleted at the next
        start: no record refers to them.
        """
        with self.read() as transaction:
            if not highest_number(transaction, self.tables.spilled):
                return True
        try:
            with self.write() as transaction:
                transaction.drop(self.tables.spilled, delete=False)
        except lmdb.Error as error:
            if isinstance(error, lmdb.MapFullError) or error.code in PASSING_ERRORS:
                return False
            raise StorageError(f"the store cannot be written: {error}") from error
        return True

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
        redo_log.copy(self.path, directory, self.disk)
        with self._reading:
            self._lmdb.copy(str(directory), compact=True)

    @property
    def file_bytes(self) -> int:
        """The size of the file, on the writer's thread."""
        return (int(self._lmdb.info()["last_pgno"]) + 1) * _USUAL_PAGE

    def has_room(self, size: int) -> bool:
        """Return whether the file can grow by so many bytes, on the writer's thread."""
        try:
            return self._map_size - self.file_bytes >= size and self.disk.free_bytes(self.path) >= size
        except OSError:
            return False

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
                self.disk.rename(file, self.path / FILE)
            except OSError:
                self._reopen()
                raise
            try:
                # another program may hold the old pair of files; numbers in the old lock must not be used with the new
                # data
                self.disk.remove(self.path / LOCK)
                self.disk.sync_directories(self.path)
                self._reopen()
            except (OSError, lmdb.Error) as error:
                raise StorageError(f"the compacted store cannot be opened: {error}") from error
            self._bytes_seen = 0

    def _reopen(self) -> None:
        self._lmdb = self._open()
        self.tables = open_tables(self._lmdb)

    def end_era(self) -> bool:
        """Store that all changes are in the tables, as the store stops; return whether that was possible.

        Otherwise the next start reads the redo log again, which changes nothing.
        """
        try:
            with self.read() as transaction:
                has_era = read_era(transaction, self.tables.meta) > 0
            if has_era:
                with self.write() as transaction:
                    write_era(transaction, self.tables, 0)
        except (lmdb.Error, StorageError):
            return False
        return True

    def close(self) -> None:
        """Close the files. No transaction may be open."""
        self._opened.close()

    def _sync_remains(self, is_new: bool) -> None:
        """Sync what an earlier process wrote, and the names of its files.

        It may have been killed between writing and syncing them. What is read now counts as durable.
        """
        if not self.disk.is_synced:
            return
        self._lmdb.sync(True)
        with suppress(*(() if is_new else (PermissionError,))):  # the parent may belong to another user
            self.disk.sync_directories(self.path)

    def _close_lmdb(self) -> None:
        self._lmdb.close()

    def _open(self) -> lmdb.Environment:
        return self.disk.open_lmdb(
            self.path,
            map_size=self._map_size,
            max_dbs=MAX_TABLES,
            mode=0o600,
            readahead=False,  # reads are by key; read-ahead would waste memory
            meminit=False,  # zeroing each page before writing it is not needed
            max_spare_txns=1,  # each call of ``read`` begins a transaction
        )
