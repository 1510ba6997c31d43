"""The record that reserves pages of the file, and its deletion."""

from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from typing import Final

import lmdb

from gateway_lmdb.schema import Tables, Transaction

#: The key of the record in the table ``meta``.
KEY: Final = b"reserve"

_MARK: Final = b"reserve used"


def release(begin: Callable[[], AbstractContextManager[Transaction]], tables: Tables) -> bool:
    """Delete the reserve of a store whose write transactions ``begin`` returns; return whether that was possible."""
    is_deleted = False
    with suppress(lmdb.Error):
        with begin() as transaction:
            transaction.delete(KEY, db=tables.meta)
        is_deleted = True
        with begin() as transaction:  # LMDB reuses pages in the second transaction after
            transaction.put(_MARK, b"", db=tables.meta)
    return is_deleted
