"""Reserved pages of the file: on a full disk without free pages, not even a deletion could be written.

LMDB writes every change to free pages first. On a full disk there are none, so consumed or purged messages would stay
on disk, and the stall would not end. The reserve is one record; a stalled writer deletes it when deletions and little
else wait to be written.
"""

from contextlib import suppress
from typing import Final

import lmdb

from gateway.kernel.errors import StorageError
from gateway_lmdb.environment import Environment
from gateway_lmdb.reserved_pages import KEY, release

#: The size of the reserve, in bytes.
SIZE: Final = 512 * 1024

#: The reserve is used when at most this waits to be written, in bytes: the rest is for deletions.
MOST_WAITING: Final = SIZE // 4

#: Smaller files have no reserve.
_LEAST_FILE: Final = 8 * 2**20

#: The free space that replaces the reserve when no free run of pages fits one record, in bytes.
_FREE_INSTEAD: Final = 4 * SIZE

#: The number of calls of ``renew`` between two attempts, each after several commits.
_PAUSE: Final = 16


class FreePageReserve:
    """The reserve of one store. Used on the writer's thread, between transactions."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        with environment.read() as transaction, transaction.cursor(environment.tables.meta) as cursor:
            self.is_there = cursor.set_key(KEY)
        self._pause = 0

    def renew(self) -> None:
        """Write the reserve, if there is none and the file is large enough; do nothing without room for it."""
        if self.is_there:
            return
        if self._pause or self._environment.file_bytes < _LEAST_FILE:
            self._pause = max(0, self._pause - 1)
            return
        with suppress(lmdb.Error):
            with self._environment.write() as transaction:
                transaction.put(KEY, bytes(SIZE), db=self._environment.tables.meta)
            self.is_there = True
        self._pause = 0 if self.is_there else _PAUSE

    def is_back(self) -> bool:
        """Renew the reserve after a stall; return whether the file has it, has other free pages, or needs none."""
        self._pause = 0
        self.renew()
        if self.is_there:
            return True
        try:
            usage = self._environment.usage()
        except StorageError:
            return False
        return usage.file_bytes < _LEAST_FILE or usage.free_bytes >= _FREE_INSTEAD

    def release(self) -> None:
        """Delete the reserve to free its pages; do nothing if that fails."""
        if self.is_there and release(self._environment.write, self._environment.tables):
            self.is_there = False
