"""Pages of the file that are kept back for a full disk: without any, not even a deletion could be written.

LMDB writes every change to free pages first. On a full disk there are none, so messages that are consumed or purged
would stay on disk, and the stall would not end. The reserve is one record; a stalled writer removes it when what waits
is little, and so has room to let go of more.
"""

from contextlib import suppress
from typing import Final

import lmdb

from gateway_lmdb.environment import Environment

#: How much is kept back.
SIZE: Final = 512 * 1024

#: So much may wait to be written when the reserve is used: the rest is for what is let go of.
MOST_WAITING: Final = SIZE // 4

#: Smaller files do without.
_LEAST_FILE: Final = 8 * 2**20

_KEY: Final = b"reserve"
_MARK: Final = b"reserve used"

#: After so many commits without room for it another attempt is made.
_PAUSE: Final = 256


class FreePageReserve:
    """The reserve of one store, on the writer's thread, between its transactions."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        with environment.read() as transaction, transaction.cursor(environment.tables.meta) as cursor:
            self.is_there = cursor.set_key(_KEY)
        self._pause = 0

    def renew(self) -> None:
        """Set pages aside, if none are and the file is large enough; harmless where there is no room."""
        if self.is_there:
            return
        if self._pause or self._environment.file_bytes < _LEAST_FILE:
            self._pause = max(0, self._pause - 1)
            return
        with suppress(lmdb.Error):
            with self._environment.write() as transaction:
                transaction.put(_KEY, bytes(SIZE), db=self._environment.tables.meta)
            self.is_there = True
        self._pause = 0 if self.is_there else _PAUSE

    def release(self) -> None:
        """Free the pages for the transactions to come. Harmless where not even that can be written."""
        if not self.is_there:
            return
        with suppress(lmdb.Error):
            with self._environment.write() as transaction:
                transaction.delete(_KEY, db=self._environment.tables.meta)
            self.is_there = False
            with self._environment.write() as transaction:  # LMDB reuses pages in the second transaction after
                transaction.put(_MARK, b"", db=self._environment.tables.meta)
