"""Looking into encoded field tables and editing them, so that what is not touched keeps its very bytes.

Re-encoding would turn an ``i`` into an ``l`` and a ``f`` into a ``d``; consumers would see other types than were sent.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Final, NamedTuple

from gateway.kernel.message import Value
from gateway_amqp.tables import (
    KINDS,
    CutShort,
    Kind,
    MalformedField,
    contents_at,
    deeper,
    encode_field,
    kind_at,
    read_short_text,
    sized,
)

TABLE: Final = KINDS[ord("F")]
ARRAY: Final = KINDS[ord("A")]

EMPTY_TABLE: Final = b"\0\0\0\0"


class Field(NamedTuple):
    """Where one field of an encoded table lies: its name, its type, its first byte and the byte after its last."""

    name: bytes
    kind: Kind
    start: int
    end: int


def check_table(data: bytes, offset: int = 0) -> int:
    """Return where the table at ``offset`` ends, having refused whatever :func:`decode_table` would refuse.

    Much cheaper than decoding: every message with headers passes here.
    """
    start, end = contents_at(data, offset, len(data))
    _check_fields(data, start, end, 1)
    return end


def fields_of(table: bytes) -> Iterator[Field]:
    """List the fields of an encoded table, from its length to its last byte."""
    position, end = contents_at(table, 0, len(table))
    if end != len(table):
        raise MalformedField(f"{len(table) - end} bytes follow the table")
    while position < end:
        name_end = _check_name(table, position, end)
        value_end = _check_value(table, name_end, end, 1)
        yield Field(table[position + 1 : name_end], KINDS[table[name_end]], position, value_end)
        position = value_end


def without_fields(table: bytes, names: Collection[str]) -> bytes:
    """Return the encoded table without these fields; the others keep their very bytes."""
    unwanted = {name.encode() for name in names}
    kept = b"".join(table[field.start : field.end] for field in fields_of(table) if field.name not in unwanted)
    return sized(kept)


def with_field(table: bytes, name: str, value: Value) -> bytes:
    """Return the encoded table with this field last, instead of any of its name; the others keep their very bytes."""
    return with_fields(table, {name: value})


def with_fields(table: bytes, fields: Mapping[str, Value]) -> bytes:
    """Return the encoded table with these fields last, instead of any of their names."""
    encoded = b"".join([encode_field(name, value) for name, value in fields.items()])
    return sized(without_fields(table, fields)[4:] + encoded)


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
