"""Errors as LMDB raises them."""

import os
from typing import Final

import lmdb

BAD_TRANSACTION: Final = (lmdb.BadTxnError, -30782, "Transaction must abort, has a child, or is invalid")
BAD_SIZE: Final = (lmdb.BadValsizeError, -30781, "Unsupported size of key/DB name/data, or wrong DUPFIXED size")
MAP_FULL: Final = (lmdb.MapFullError, -30792, "Environment mapsize limit reached")
NOT_FOUND: Final = (lmdb.NotFoundError, -30798, "No matching key/data pair found")
PANIC: Final = (lmdb.PanicError, -30795, "Update of meta page failed or environment had fatal error")
TOO_MANY_TABLES: Final = (lmdb.DbsFullError, -30791, "Environment maxdbs limit reached")

#: The classes of errors of the system; others have the base class.
_BY_NUMBER: Final = {13: lmdb.ReadonlyError, 28: lmdb.DiskError, 12: lmdb.MemoryError, 22: lmdb.InvalidParameterError}


def error(what: str, kind: tuple[type[lmdb.Error], int, str]) -> lmdb.Error:
    """Return an error of LMDB in a call named ``what``."""
    cls, code, text = kind
    return _coded(cls(f"{what}: {text}"), code)


def system_error(what: str, number: int) -> lmdb.Error:
    """Return an error of the system in a call named ``what``."""
    return _coded(_BY_NUMBER.get(number, lmdb.Error)(f"{what}: {os.strerror(number)}"), number)


def closed() -> lmdb.Error:
    """Return the error of a call to an object that is closed."""
    return _coded(lmdb.Error("Attempt to operate on closed/deleted/dropped object."), 0)


def _coded(raised: lmdb.Error, code: int) -> lmdb.Error:
    raised.code = code  # type: ignore[misc]
    return raised
