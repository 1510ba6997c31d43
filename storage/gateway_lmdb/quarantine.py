"""The quarantine: records that cannot be used, with their origin, the reason, and their original bytes.

The key of such a record is the name of its table, a colon and its key there, so setting it aside again has no effect.
The value consists of a version, the length of the description, the description as ``values.dumps`` writes it, and the
bytes.
"""

import json
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import lmdb

from gateway.kernel.errors import StorageError
from gateway.kernel.journal.changes import MESSAGE, PLACE, SetAside
from gateway.kernel.journal.records.entity import ENTITY_BY_KIND
from gateway.kernel.messages import values
from gateway.kernel.messages.contents import newer
from gateway.kernel.messages.message import Value
from gateway_lmdb.schema import Tables, Transaction, entity_key, pack_number, unpack_number

QUARANTINE_VERSION: Final = 1

_HEAD: Final = struct.Struct(">BI")

#: The field of an entity's queue id in its record.
_QUEUE_ID: Final = re.compile(rb'"(?:queue_)?id":(\d{1,20})')

#: The kinds of entities that store messages.
_KEEPERS: Final = frozenset({"queue", "exchange", "archive"})

#: Replaces the queue id of an entity that stores messages when its record does not contain it.
UNKNOWN_QUEUE: Final = -1

_ENTITY_HEAD_SIZE: Final = 3
_LONGEST_NAME: Final = 200


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A record set aside: its ``table``, ``key``, kind and name, and the reason.

    ``queue_id`` is the id under which it stores messages, 0 for none. ``record`` is its content, empty until the record
    is moved.
    """

    table: str
    key: bytes
    kind: str
    name: tuple[Value, ...]
    reason: str
    queue_id: int = 0
    record: bytes = b""

    def as_change(self) -> SetAside:
        """Return the change as the kernel gets it."""
        return SetAside(self.kind, self.name, self.reason, max(self.queue_id, 0))


def quarantined(aside: SetAside) -> Quarantined:
    """Return the location of a record that the kernel sets aside."""
    number = aside.key[0] if aside.key else None
    if aside.kind == MESSAGE and isinstance(number, int):
        return Quarantined("contents", pack_number(number), aside.kind, aside.key, aside.reason)
    if aside.kind == PLACE and isinstance(number, int):
        return Quarantined("enqueued", pack_number(number), aside.kind, aside.key, aside.reason)
    key = entity_key(aside.kind, aside.key)
    return Quarantined("entities", key, aside.kind, aside.key, aside.reason, aside.queue_id)


def unreadable_entity(key: bytes, record: bytes, reason: str) -> Quarantined:
    """Describe an entity whose record cannot be read."""
    kind = key.partition(b":")[0].decode(errors="replace")
    queue_id = 0
    if kind in _KEEPERS:
        found = _QUEUE_ID.search(record)
        queue_id = UNKNOWN_QUEUE if found is None else int(found[1])
    return Quarantined("entities", key, kind, _name_in(kind, record), reason, queue_id)


def unreadable_message(message_id: int, reason: str) -> Quarantined:
    """Describe a message whose content cannot be read."""
    return Quarantined("contents", pack_number(message_id), MESSAGE, (message_id,), reason)


def unreadable_place(key: bytes, reason: str) -> Quarantined:
    """Describe a queue entry that cannot be read."""
    return Quarantined("enqueued", key, PLACE, (unpack_number(key),), reason)


def set_aside(transaction: Transaction, tables: Tables, aside: Quarantined) -> None:
    """Move a record into quarantine; a missing record changes nothing."""
    table = table_named(tables, aside.table)
    record = transaction.pop(aside.key, db=table)
    if record is not None:
        transaction.put(_key(aside), _encoded(aside, record), db=tables.quarantine)


def put_back(transaction: Transaction, tables: Tables, aside: Quarantined) -> bool:
    """Move a record out of quarantine, to be tried at the next start; return ``False`` if a newer one exists."""
    table = table_named(tables, aside.table)
    if not transaction.put(aside.key, aside.record, db=table, overwrite=False):
        return False
    drop(transaction, tables, aside)
    return True


def drop(transaction: Transaction, tables: Tables, aside: Quarantined) -> None:
    """Delete a record from quarantine."""
    transaction.delete(_key(aside), db=tables.quarantine)


def all_quarantined(transaction: Transaction, tables: Tables) -> Iterator[Quarantined]:
    """Yield all records in quarantine, by table and key. :raises StorageError: when a newer gateway wrote one."""
    with transaction.cursor(tables.quarantine) as cursor:
        for key, record in cursor:
            yield _decoded(key, record)


def table_named(tables: Tables, name: str) -> lmdb._Database:
    """Return the table of this name."""
    table: lmdb._Database = getattr(tables, name)
    return table


def _key(aside: Quarantined) -> bytes:
    return aside.table.encode() + b":" + aside.key


def _encoded(aside: Quarantined, record: bytes) -> bytes:
    description = values.dumps(
        {"kind": aside.kind, "name": list(aside.name), "reason": aside.reason, "queue_id": aside.queue_id}
    )
    return _HEAD.pack(QUARANTINE_VERSION, len(description)) + description + record


def _decoded(key: bytes, record: bytes) -> Quarantined:
    table, _, own = key.partition(b":")
    try:
        version, size = _HEAD.unpack_from(record)
        if version > QUARANTINE_VERSION:
            raise newer("a record in quarantine", version, QUARANTINE_VERSION)
        description = values.loads(record[_HEAD.size : _HEAD.size + size])
        name = description["name"]
        return Quarantined(
            table.decode(),
            own,
            str(description["kind"]),
            tuple(name) if isinstance(name, list) else (),
            str(description["reason"]),
            int(str(description["queue_id"])),
            record[_HEAD.size + size :],
        )
    except (struct.error, ValueError, LookupError, RecursionError) as error:
        raise StorageError(f"the quarantine of the store cannot be read: {error}") from None


def _name_in(kind: str, record: bytes) -> tuple[Value, ...]:
    """Return the key of an entity as far as its record contains it, for display."""
    width = ENTITY_BY_KIND[kind].key_width if kind in ENTITY_BY_KIND else 0
    try:
        fields = json.loads(record[_ENTITY_HEAD_SIZE:].decode(errors="replace"))
        return tuple(str(value)[:_LONGEST_NAME] for value in list(fields.values())[:width])
    except (ValueError, AttributeError, RecursionError):
        return ()
