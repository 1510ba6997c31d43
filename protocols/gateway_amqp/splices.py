"""Validates and edits encoded field tables without decoding them, so that other fields keep their bytes.

Re-encoding would turn an ``i`` into an ``l`` and a ``f`` into a ``d``: consumers would receive other types than were
sent.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Final, NamedTuple

from gateway.kernel.messages.message import Value
from gateway_amqp.tables import (
    KINDS,
    CutShort,
    FieldType,
    MalformedField,
    contents_at,
    deeper,
    encode_field,
    encode_short_text,
    encode_value,
    kind_at,
    read_short_text,
    read_value,
    sized,
)

TABLE: Final = KINDS[ord("F")]
ARRAY: Final = KINDS[ord("A")]

EMPTY_TABLE: Final = b"\0\0\0\0"


class Field(NamedTuple):
    """One field of an encoded table: its name, its type, the position of its first byte and the position after its
    last.
    """

    name: bytes
    kind: FieldType
    start: int
    end: int


def check_table(data: bytes, offset: int = 0) -> int:
    """Return the end of the table at ``offset``. Refuse every table that :func:`decode_table` would refuse.

    Much cheaper than decoding: every message with headers passes here.
    """
    start, end = contents_at(data, offset, len(data))
    _check_fields(data, start, end, 1)
    return end


def fields_of(table: bytes) -> Iterator[Field]:
    """Iterate over the fields of an encoded table, given with its length."""
    position, end = contents_at(table, 0, len(table))
    if end != len(table):
        raise MalformedField(f"{len(table) - end} bytes follow the table")
    while position < end:
        name_end = _check_name(table, position, end)
        value_end = _check_value(table, name_end, end, 1)
        yield Field(table[position + 1 : name_end], KINDS[table[name_end]], position, value_end)
        position = value_end


def without_fields(table: bytes, names: Collection[str]) -> bytes:
    """Return the encoded table without these fields; the bytes of the others are unchanged."""
    unwanted = {name.encode() for name in names}
    kept = b"".join(table[field.start : field.end] for field in fields_of(table) if field.name not in unwanted)
    return sized(kept)


def mentions(table: bytes, names: Collection[str]) -> bool:
    """Return whether a field of the table may have one of these names: their bytes are in it."""
    for name in names:  # noqa: SIM110 - a generator would double the cost
        if encode_short_text(name) in table:
            return True
    return False


def with_field(table: bytes, name: str, value: Value) -> bytes:
    """Return the encoded table with this field last, instead of any of its name; other fields keep their bytes."""
    return with_fields(table, {name: value})


def with_fields(table: bytes, fields: Mapping[str, Value]) -> bytes:
    """Return the encoded table with these fields last, instead of any of their names. The table must be valid."""
    encoded = b"".join([encode_field(name, value) for name, value in fields.items()])
    former = [name for name in fields if encode_short_text(name) in table]  # or its bytes are in a value
    return sized((without_fields(table, former) if former else table)[4:] + encoded)


def with_array(table: bytes, name: str, items: "list[Value]") -> bytes:
    """Return the encoded table with this array last, instead of any field of its name.

    An item that was in the array before keeps its bytes. A table among the items of which only one field differs keeps
    the bytes of its other fields.
    """
    known = list(_items_of(table, name))
    written = b"".join([_written(item, known) for item in items])
    return sized(without_fields(table, (name,))[4:] + encode_short_text(name) + b"A" + sized(written))


def _items_of(table: bytes, name: str) -> "Iterator[tuple[Value, bytes]]":
    """Iterate over the items of an array in an encoded table, each decoded and as bytes."""
    for field in fields_of(table):
        if field.name == name.encode() and field.kind is ARRAY:
            position, stop = contents_at(table, field.start + 2 + len(field.name), field.end)
            while position < stop:
                end = _check_value(table, position, stop, 1)
                value, _ = read_value(table, position, stop)
                yield value, table[position:end]
                position = end


def _written(item: Value, known: "list[tuple[Value, bytes]]") -> bytes:
    """Return an item of an array as bytes, with its earlier bytes if it is known."""
    for value, raw in known:
        if value == item:
            return raw
    if isinstance(item, dict):
        for value, raw in known:
            if isinstance(value, dict) and (changed := _one_change(value, item)):
                return b"F" + with_fields(raw[1:], changed)
    return encode_value(item)


def _one_change(earlier: "dict[str, Value]", item: "dict[str, Value]") -> "dict[str, Value]":
    """Return the one field that an item adds to or changes in an earlier one; empty if there are more changes."""
    changed = {name: value for name, value in item.items() if name not in earlier or earlier[name] != value}
    return changed if len(changed) == 1 and earlier.keys() <= item.keys() else {}


def _check_fields(data: bytes, position: int, end: int, depth: int) -> None:
    while position < end:
        position = _check_value(data, _check_name(data, position, end), end, depth)


def _check_name(data: bytes, position: int, end: int) -> int:
    stop = position + 1 + data[position]
    if stop > end or not data[position + 1 : stop].isascii():
        _, stop = read_short_text(data, position, end)
    return stop


def _check_value(data: bytes, position: int, end: int, depth: int) -> int:
    kind = kind_at(data, position, end)
    if kind.size is None:
        start, stop = contents_at(data, position + 1, end)
        if kind is TABLE:
            _check_fields(data, start, stop, deeper(depth, start))
        elif kind is ARRAY:
            _check_items(data, start, stop, deeper(depth, start))
        return stop
    stop = position + 1 + kind.size
    if stop > end:
        raise CutShort(f"the value at byte {position + 1} is cut short")
    return stop


def _check_items(data: bytes, position: int, end: int, depth: int) -> None:
    while position < end:
        position = _check_value(data, position, end, depth)
