"""Encoding of entities, done before they are accepted: one that cannot be encoded is refused and changes nothing.

A record is a format byte, the version of the entity's layout, and its fields as ``values.dumps`` writes them.
"""

import struct
from collections.abc import Iterable, Mapping
from typing import Final

from gateway.kernel.errors import PreconditionFailed, StorageError, UnreadableRecord
from gateway.kernel.journal.changes import Put
from gateway.kernel.journal.records.entity import ENTITY_BY_KIND, Entity
from gateway.kernel.messages import values
from gateway.kernel.messages.contents import newer
from gateway.kernel.messages.message import Value

ENTITY_VERSION: Final = 1
"""The version of the encoding; each kind of entity has a layout version of its own."""

MOST_NESTED: Final = 100
"""The limit of nested tables and lists. AMQP's own tables allow 64."""

_HEAD: Final = struct.Struct(">BH")


def writable(entity: Entity) -> Put:
    """Return the change that puts an entity, already encoded.

    :raises PreconditionFailed: if the entity cannot be encoded, or could not be decoded again.
    """
    require_writable(entity.to_fields())
    try:
        record = encode_entity(entity)
        record.decode()
    except (TypeError, ValueError, RecursionError) as error:
        raise PreconditionFailed(f"{_named(entity)} cannot be stored: {_reason(error)}") from None
    return Put(entity, record)


def require_writable(table: Mapping[str, Value]) -> None:
    """Check that a table is not nested too deeply to be stored and listed. :raises PreconditionFailed: if it is."""
    level: list[Value] = [value for value in table.values() if isinstance(value, dict | list)]
    for _ in range(MOST_NESTED):
        if not level:
            return
        level = [inner for outer in level for inner in _items(outer) if isinstance(inner, dict | list)]
    if level:
        raise PreconditionFailed(f"more than {MOST_NESTED} tables and lists are inside each other")


def encode_entity(entity: Entity) -> bytes:
    """Return the record of an entity."""
    return _HEAD.pack(ENTITY_VERSION, entity.version) + entity.encoded()


def decode_entity(kind: str, record: bytes) -> Entity:
    """Return the entity of a record, in the current layout.

    :raises UnreadableRecord: if the record is invalid.
    :raises StorageError: if a newer gateway wrote it.
    """
    entity = ENTITY_BY_KIND.get(kind)
    if entity is None:
        raise StorageError(f"the store has an entity of an unknown kind: {kind}")
    if len(record) < _HEAD.size:
        raise UnreadableRecord("the record is incomplete")
    encoding, version = _HEAD.unpack_from(record)
    if encoding > ENTITY_VERSION:
        raise newer(f"the encoding of a {kind}", encoding, ENTITY_VERSION)
    if version > entity.version:
        raise newer(f"a {kind}", version, entity.version)
    fields = record[_HEAD.size :]
    try:
        fields.decode()  # older versions also wrote lone surrogates, which listings cannot show
        return entity.from_fields(values.loads(fields), version)
    except (TypeError, ValueError, ArithmeticError, LookupError, RecursionError) as error:
        raise UnreadableRecord(_reason(error)) from None


def _items(outer: Value) -> Iterable[Value]:
    if isinstance(outer, dict):
        return outer.values()
    return outer if isinstance(outer, list) else ()


def _named(entity: Entity) -> str:
    return f"{entity.kind} {list(entity.key)!r}"[:500]


def _reason(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "it holds text that is not UTF-8"
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return f"{type(error).__name__}: {error}"[:500]
