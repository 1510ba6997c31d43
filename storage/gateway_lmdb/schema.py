"""The tables of the store, their keys, and the version of the format.

=========  ==================================  ==================================
table      key                                 value (see ``records``)
=========  ==================================  ==================================
meta       a name                              its value
entities   kind, colon, digest of the key      the entity
contents   message id, 8 bytes, big-endian     a message's content
enqueued   position, 8 bytes, big-endian       an entry of a queue
spilled    message id, 8 bytes, big-endian     a content of this run only
chunks     stream id, first offset, 8 + 8      messages of a stream, not in a file yet
segments   stream id, first offset, 8 + 8      a sealed segment of a stream
streams    stream id, 8 bytes                  the first offset, once it is not 0
quarantine a table's name, colon, a key in it  a record that cannot be used (see ``quarantine``)
=========  ==================================  ==================================
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, fields
from hashlib import blake2b
from typing import Final, TypeAlias

import lmdb

from gateway.kernel.errors import StorageError, UnreadableRecord
from gateway.kernel.messages import values
from gateway.kernel.messages.message import Value

Transaction: TypeAlias = "lmdb.Transaction[bytes]"

#: Incremented when tables or keys change; records have versions of their own.
FORMAT_VERSION: Final = 2

#: The format of a store that was stopped in order. While a store is in use it has the newest one: changes may be in the
#: redo log alone, which earlier gateways do not read.
STOPPED_FORMAT: Final = 1

#: More tables than exist, so that a later version can add some without a new format.
MAX_TABLES: Final = 16

_FORMAT_KEY: Final = b"format"
_ERA_KEY: Final = b"redo era"
_NUMBER: Final = struct.Struct(">Q")
_PLACE: Final = struct.Struct(">QQ")

pack_number: Final = _NUMBER.pack
"""The key of a message id or a position: big-endian, so that keys sort by number."""


pack_place: Final = _PLACE.pack
"""The key of a stream's chunk or segment, from the stream's number and an offset; sorts by both."""


def unpack_place(key: bytes) -> tuple[int, int]:
    """Return the stream's number and the offset of a key."""
    try:
        stream_id, offset = _PLACE.unpack(key)
    except struct.error:
        raise UnreadableRecord(f"the store is damaged: a key of {len(key)} bytes where 16 are expected") from None
    return stream_id, offset


def unpack_number(key: bytes) -> int:
    """Return the message id or position of a key."""
    try:
        number: int = _NUMBER.unpack(key)[0]
    except struct.error:
        raise UnreadableRecord(f"the store is damaged: a key of {len(key)} bytes where 8 are expected") from None
    return number


def entity_key(kind: str, key: Sequence[Value]) -> bytes:
    """Return the key of an entity: a digest, since names and arguments may exceed the 511 bytes of an LMDB key."""
    return kind.encode() + b":" + blake2b(values.dumps_key(key), digest_size=32).digest()


@dataclass(frozen=True, slots=True)
class Tables:
    """The open tables of one environment."""

    meta: lmdb._Database
    entities: lmdb._Database
    contents: lmdb._Database
    enqueued: lmdb._Database
    spilled: lmdb._Database
    chunks: lmdb._Database
    segments: lmdb._Database
    streams: lmdb._Database
    quarantine: lmdb._Database

    def all(self) -> list[lmdb._Database]:
        """Return every table."""
        return [getattr(self, field.name) for field in fields(self)]


def open_tables(environment: lmdb.Environment) -> Tables:
    """Open the tables, creating them in a new store.

    :raises StorageError: for a newer format, or data of another program.
    """
    _require_ours(environment)
    with environment.begin(write=True) as transaction:
        meta = environment.open_db(b"meta", transaction)
        _agree_on_format(transaction, meta)
        return Tables(
            meta,
            environment.open_db(b"entities", transaction),
            environment.open_db(b"contents", transaction),
            environment.open_db(b"enqueued", transaction),
            environment.open_db(b"spilled", transaction),
            environment.open_db(b"chunks", transaction),
            environment.open_db(b"segments", transaction),
            environment.open_db(b"streams", transaction),
            environment.open_db(b"quarantine", transaction),
        )


def highest_number(transaction: Transaction, table: lmdb._Database) -> int:
    """Return the highest message id or position in a table; 0 when it is empty."""
    with transaction.cursor(table) as cursor:
        return unpack_number(cursor.key()) if cursor.last() else 0


def read_era(transaction: Transaction, meta: lmdb._Database) -> int:
    """Return the era of the redo log whose records follow this state of the tables; 0 without one."""
    stored = transaction.get(_ERA_KEY, db=meta)
    return 0 if stored is None else unpack_number(stored)


def write_era(transaction: Transaction, tables: Tables, era: int) -> None:
    """Store the era of the redo log that begins with this transaction; 0 if none does, as the store stops."""
    if era:
        transaction.put(_ERA_KEY, pack_number(era), db=tables.meta)
    else:
        transaction.delete(_ERA_KEY, db=tables.meta)
    transaction.put(_FORMAT_KEY, str(FORMAT_VERSION if era else STOPPED_FORMAT).encode(), db=tables.meta)


def _require_ours(environment: lmdb.Environment) -> None:
    """Check that a gateway wrote the file. An empty one was created and never used."""
    with environment.begin() as transaction:
        if not environment.stat()["entries"]:
            return
        try:
            meta = environment.open_db(b"meta", transaction, create=False)
        except (lmdb.NotFoundError, lmdb.IncompatibleError):
            meta = None
        if meta is None or transaction.get(_FORMAT_KEY, db=meta) is None:
            raise StorageError("data.mdb is an LMDB file, but not a store of a gateway")


def _agree_on_format(transaction: Transaction, meta: lmdb._Database) -> None:
    written = transaction.get(_FORMAT_KEY, db=meta)
    if written is None:
        transaction.put(_FORMAT_KEY, str(STOPPED_FORMAT).encode(), db=meta)
    elif not written.isdigit():
        raise StorageError("the format number of the store is not a number: the store is damaged")
    elif int(written) > FORMAT_VERSION:
        raise StorageError(
            f"the store has format {int(written)}, written by a newer gateway; this one reads up to {FORMAT_VERSION}"
        )
