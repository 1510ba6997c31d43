"""The changes of a batch as the bytes of a redo record.

A record is a sequence of operations on tables: what to do and in which table (1 byte), the sizes of key and value (2
and 4 bytes, big-endian), then key and value. Keys and values are those of the tables, so a replay puts and deletes
without decoding. Applying a record twice is the same as once.
"""

from collections.abc import Callable
from struct import Struct, error
from typing import Final, TypeVar

from gateway.kernel.errors import StorageError
from gateway.kernel.journal.changes import Put
from gateway.kernel.journal.entity_codec import encode_entity
from gateway.kernel.messages.message import Message
from gateway_lmdb.batch import Batch, TableBatch
from gateway_lmdb.records import encode_enqueued
from gateway_lmdb.schema import Tables, Transaction, pack_number

T = TypeVar("T")

_OPERATION: Final = Struct(">BHI")
_pack: Final[Callable[[int, int, int], bytes]] = _OPERATION.pack

#: The bit of an operation that deletes; the others are the number of a table.
_DELETE: Final = 0x80

_ENTITIES: Final = 0
_CONTENTS: Final = 1
_ENQUEUED: Final = 2

#: The size of a number as a key.
_NUMBER_SIZE: Final = 8


def encode_batch(batch: Batch, encode_content: Callable[[Message], bytes]) -> bytes:
    """Return the operations of a batch. Its spilled contents need not survive, and are left out.

    What cannot be encoded raises the exception of its encoder.
    """
    parts: list[bytes] = []
    for key, put in batch.entities.items():
        if put is None:
            parts += (_pack(_DELETE | _ENTITIES, len(key), 0), key)
        else:
            record = put.record
            if not record:
                record = encode_entity(put.entity)
                batch.entities[key] = Put(put.entity, record)  # encoded for the tables as well
            parts += (_pack(_ENTITIES, len(key), len(record)), key, record)
    _add_table(parts, _CONTENTS, batch.contents, encode_content)
    _add_table(parts, _ENQUEUED, batch.enqueued, encode_enqueued)
    return b"".join(parts)


def _add_table(parts: list[bytes], number: int, table: TableBatch[T], encode: Callable[[T], bytes]) -> None:
    for deleted in table.deletes:
        parts += (_pack(_DELETE | number, _NUMBER_SIZE, 0), pack_number(deleted))
    for key, value in table.puts.items():
        record = encode(value)
        parts += (_pack(number, _NUMBER_SIZE, len(record)), pack_number(key), record)


def operations(payload: bytes) -> list[tuple[int, bytes, bytes | None]]:
    """Return the operations of a record: number of the table, key, and the value, ``None`` to delete.

    :raises StorageError: if it cannot be read.
    """
    found: list[tuple[int, bytes, bytes | None]] = []
    position = 0
    while position < len(payload):
        try:
            kind, key_size, size = _OPERATION.unpack_from(payload, position)
        except error:
            raise StorageError(f"the redo log is damaged: a record ends within the operation at {position}") from None
        key_end = position + _OPERATION.size + key_size
        position, key = key_end + size, payload[key_end - key_size : key_end]
        if position > len(payload):
            raise StorageError(f"the redo log is damaged: an operation has {position - len(payload)} bytes too few")
        found.append((kind & ~_DELETE, key, None if kind & _DELETE else payload[key_end:position]))
    return found


def apply(payload: bytes, transaction: Transaction, tables: Tables) -> None:
    """Perform the operations of a record. :raises StorageError: if it cannot be read."""
    by_number = {_ENTITIES: tables.entities, _CONTENTS: tables.contents, _ENQUEUED: tables.enqueued}
    for number, key, value in operations(payload):
        table = by_number.get(number)
        if table is None:
            raise StorageError(f"the redo log is damaged: there is no table {number}")
        if value is None:
            transaction.delete(key, db=table)
        else:
            transaction.put(key, value, db=table)


def entity_changes(payload: bytes) -> dict[bytes, bytes | None]:
    """Return the changed entities of a record by key; ``None`` for a deleted one."""
    return {key: value for number, key, value in operations(payload) if number == _ENTITIES}
