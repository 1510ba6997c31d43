"""Codec of field tables in RabbitMQ's variant.

Decoding is strict: every length is checked against its container. pamqp's decoder is not used, because it accepts
truncated tables and takes large timestamps for milliseconds. The letters are those of RabbitMQ's errata to AMQP 0-9-1
(4.2.1), where ``s`` is an integer and both ``l`` and ``L`` are signed. A duplicate name keeps its first value, as in
RabbitMQ.
"""

from calendar import timegm
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from struct import Struct
from typing import Any, Final, NamedTuple, TypeAlias

from gateway.kernel.errors import ProtocolViolation
from gateway.kernel.messages.long import Long
from gateway.kernel.messages.message import Value
from gateway_amqp.timestamp import Timestamp

MAX_DEPTH: Final = 64
"""The nesting limit of tables and arrays; RabbitMQ has none, but Python's stack is limited."""

LAST_SECOND: Final = 253_402_300_799
"""The end of the year 9999, the largest datetime."""


class MalformedField(ProtocolViolation):
    """A table or a property that cannot be decoded; the text names the reason and the byte."""


class CutShort(MalformedField):
    """A value that claims to be longer than its container."""


# ---------------------------------------------------------------- decoding

Reader: TypeAlias = Callable[[bytes, int, int, int], tuple[Value, int]]
"""(data, position, end of the container, depth) -> (value, position of the next item)."""

_LENGTH: Final = Struct(">I")
_DOUBLE: Final = Struct(">d")
_TEXT: Final = ord("S")


def decode_table(data: bytes, offset: int = 0) -> tuple[dict[str, Value], int]:
    """Decode the table whose length is at ``offset``; return it and the position after it.

    ``S`` becomes ``str`` if it is UTF-8 and ``bytes`` otherwise, ``T`` a datetime in UTC or, out of its range, a
    :class:`Timestamp`. Raises :class:`MalformedField` and no other error.
    """
    start, end = contents_at(data, offset, len(data))
    return _read_fields(data, start, end, 1), end


def decode_fields(data: bytes) -> dict[str, Value]:
    """Decode the fields of a table without a length, as in an AMQPLAIN response."""
    return _read_fields(data, 0, len(data), 1)


def read_value(data: bytes, position: int, end: int) -> tuple[Value, int]:
    """Return the value whose type is at ``position``, and the position after it."""
    return _read_value(data, position, end, 1)


def read_short_text(data: bytes, position: int, end: int) -> tuple[str, int]:
    """Decode a short string (4.2.5.3), which must be UTF-8 and end before ``end``."""
    if position >= end:
        raise CutShort(f"the short string at byte {position} is missing")
    start = position + 1
    stop = start + data[position]
    if stop > end:
        raise CutShort(f"the short string at byte {position} is cut short")
    try:
        return data[start:stop].decode(), stop
    except UnicodeDecodeError as error:
        raise MalformedField(f"the short string at byte {position} is not UTF-8") from error


def datetime_of(seconds: int) -> datetime | Timestamp:
    """Return the time, or a :class:`Timestamp` if the publisher sent milliseconds or an invalid time."""
    return datetime.fromtimestamp(seconds, UTC) if seconds <= LAST_SECOND else Timestamp(seconds)


def contents_at(data: bytes, position: int, end: int) -> tuple[int, int]:
    """Return the bounds of the bytes whose length is at ``position``; they must not exceed ``end``."""
    start = position + 4
    if start > end:
        raise CutShort(f"the length at byte {position} is cut short")
    (size,) = _LENGTH.unpack_from(data, position)
    if start + size > end:
        raise CutShort(f"{size} bytes announced at byte {position}, but only {end - start} follow")
    return start, start + size


def _read_fields(data: bytes, position: int, end: int, depth: int) -> dict[str, Value]:
    fields: dict[str, Value] = {}
    while position < end:
        name, position = read_short_text(data, position, end)
        value, position = _read_value(data, position, end, depth)
        fields.setdefault(name, value)
    return fields


def _read_value(data: bytes, position: int, end: int, depth: int) -> tuple[Value, int]:
    if position < end and data[position] == _TEXT:  # most values, without a call through the table
        return _read_text(data, position + 1, end, depth)
    return kind_at(data, position, end).read(data, position + 1, end, depth)


def kind_at(data: bytes, position: int, end: int) -> "FieldType":
    """Return the type of the value at ``position``."""
    if position >= end:
        raise CutShort(f"the value at byte {position} is missing")
    kind = KINDS.get(data[position])
    if kind is None:
        raise MalformedField(f"unknown field type {data[position : position + 1]!r} at byte {position}")
    return kind


def deeper(depth: int, position: int) -> int:
    """Return the depth inside a table or an array. :raises MalformedField: when the nesting is too deep."""
    if depth >= MAX_DEPTH:
        raise MalformedField(f"more than {MAX_DEPTH} tables and arrays inside each other at byte {position}")
    return depth + 1


def _plain(layout: str, convert: Callable[..., Value] | None = None) -> Reader:
    """Return a reader of fixed-size values: ``layout``'s numbers, converted by ``convert``."""
    unpack, size = Struct(layout).unpack_from, Struct(layout).size

    def read(data: bytes, position: int, end: int, depth: int) -> tuple[Value, int]:
        if position + size > end:
            raise CutShort(f"the value at byte {position} is cut short")
        numbers = unpack(data, position)
        return (convert(*numbers) if convert else numbers[0]), position + size

    return read


def _read_void(data: bytes, position: int, end: int, depth: int) -> tuple[Value, int]:
    return None, position


def _read_text(data: bytes, position: int, end: int, depth: int) -> tuple[Value, int]:
    start, stop = contents_at(data, position, end)
    content = data[start:stop]
    try:
        return content.decode(), stop
    except UnicodeDecodeError:
        return content, stop


def _read_bytes(data: bytes, position: int, end: int, depth: int) -> tuple[Value, int]:
    start, stop = contents_at(data, position, end)
    return data[start:stop], stop


def _read_table(data: bytes, position: int, end: int, depth: int) -> tuple[Value, int]:
    start, stop = contents_at(data, position, end)
    return _read_fields(data, start, stop, deeper(depth, position)), stop


def _read_array(data: bytes, position: int, end: int, depth: int) -> tuple[Value, int]:
    position, stop = contents_at(data, position, end)
    inner, items = deeper(depth, position), []
    while position < stop:
        value, position = _read_value(data, position, stop, inner)
        items.append(value)
    return items, stop


def _decimal(scale: int, unscaled: int) -> Decimal:
    # 4.2.5.5 calls the number signed, and clients treat it so; RabbitMQ decodes it unsigned but never uses its value.
    return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -scale))


class FieldType(NamedTuple):
    """A type of field: RabbitMQ's name for it, its size in bytes if it is fixed, and its reader."""

    name: str
    size: int | None
    read: Reader


KINDS: Final[Mapping[int, FieldType]] = {
    ord("S"): FieldType("longstr", None, _read_text),
    ord("t"): FieldType("bool", 1, _plain(">?")),
    ord("b"): FieldType("byte", 1, _plain(">b")),
    ord("B"): FieldType("unsignedbyte", 1, _plain(">B")),
    ord("s"): FieldType("short", 2, _plain(">h")),
    ord("u"): FieldType("unsignedshort", 2, _plain(">H")),
    ord("I"): FieldType("signedint", 4, _plain(">i")),
    ord("i"): FieldType("unsignedint", 4, _plain(">I")),
    ord("l"): FieldType("long", 8, _plain(">q")),
    ord("L"): FieldType("long", 8, _plain(">q")),
    ord("f"): FieldType("float", 4, _plain(">f")),
    ord("d"): FieldType("double", 8, _plain(">d")),
    ord("D"): FieldType("decimal", 5, _plain(">Bi", _decimal)),
    ord("T"): FieldType("timestamp", 8, _plain(">Q", datetime_of)),
    ord("F"): FieldType("table", None, _read_table),
    ord("A"): FieldType("array", None, _read_array),
    ord("x"): FieldType("binary", None, _read_bytes),
    ord("V"): FieldType("void", 0, _read_void),
}


# ---------------------------------------------------------------- encoding


def encode_table(table: Mapping[str, Value]) -> bytes:
    """Encode a table with its length.

    Integers take 32 bits (``I``) if they fit and 64 (``l``) otherwise, as in RabbitMQ's clients.

    :raises ValueError: for names over 255 bytes and for values that AMQP cannot encode: integers beyond 64 bits,
        decimals beyond 32 bits or 255 places, times before 1970, more than ``MAX_DEPTH`` levels.
    """
    return _write_table(table, 1)


def seconds_of(time: datetime) -> int:
    """Return the seconds since 1970; a time without a zone is taken as UTC."""
    seconds = timegm(time.utctimetuple())
    if seconds < 0:
        raise ValueError(f"{time.isoformat()} is before 1970")
    return seconds


def encode_short_text(text: str) -> bytes:
    """Encode a short string. :raises ValueError: when it is longer than 255 bytes."""
    content = text.encode()
    if len(content) > 255:
        raise ValueError(f"{text[:20]!r}... is longer than the 255 bytes of a short string")
    return bytes((len(content),)) + content


def sized(content: bytes) -> bytes:
    """Return the content with its length in front."""
    return _LENGTH.pack(len(content)) + content


def _write_table(table: Mapping[str, Value], depth: int) -> bytes:
    return sized(b"".join([encode_field(name, value, depth) for name, value in table.items()]))


def _write_array(items: list[Value], depth: int) -> bytes:
    return sized(b"".join([_write_value(item, depth) for item in items]))


def encode_value(value: Value) -> bytes:
    """Encode one value with its type, as an item of an array."""
    return _write_value(value, 2)


def encode_field(name: str, value: Value, depth: int = 1) -> bytes:
    """Encode one field of a table: name, type and value."""
    return encode_short_text(name) + _write_value(value, depth)


def _write_value(value: Value, depth: int) -> bytes:
    for base in type(value).__mro__:
        write = _WRITERS.get(base)
        if write is not None:
            return write(value, depth)
    raise ValueError(f"no field type for {type(value).__name__}")


def _inside(depth: int) -> int:
    if depth >= MAX_DEPTH:
        raise ValueError(f"more than {MAX_DEPTH} tables and arrays inside each other")
    return depth + 1


def _write_integer(number: int) -> bytes:
    if -(1 << 31) <= number < 1 << 31:
        return b"I" + number.to_bytes(4, signed=True)
    return _write_long(number)


def _write_long(number: int) -> bytes:
    if not -(1 << 63) <= number < 1 << 63:
        raise ValueError(f"{number} does not fit into 64 bits")
    return b"l" + number.to_bytes(8, signed=True)


def _write_decimal(number: Decimal) -> bytes:
    sign, digits, exponent = number.as_tuple()
    if isinstance(exponent, int) and -255 <= exponent <= 10:
        unscaled = int("-" * sign + "".join(map(str, digits)) + "0" * exponent)
        if -(1 << 31) <= unscaled < 1 << 31:
            return b"D" + bytes((max(0, -exponent),)) + unscaled.to_bytes(4, signed=True)
    raise ValueError(f"{number} does not fit into a decimal of 32 bits and 255 places")


def _write_time(seconds: int) -> bytes:
    return b"T" + seconds.to_bytes(8)


_WRITERS: Final[Mapping[type, Callable[[Any, int], bytes]]] = {
    str: lambda value, depth: b"S" + sized(value.encode()),
    bool: lambda value, depth: b"t\x01" if value else b"t\x00",
    Long: lambda value, depth: _write_long(value),
    Timestamp: lambda value, depth: _write_time(value),
    int: lambda value, depth: _write_integer(value),
    float: lambda value, depth: b"d" + _DOUBLE.pack(value),
    bytes: lambda value, depth: b"x" + sized(value),
    Decimal: lambda value, depth: _write_decimal(value),
    datetime: lambda value, depth: _write_time(seconds_of(value)),
    type(None): lambda value, depth: b"V",
    list: lambda value, depth: b"A" + _write_array(value, _inside(depth)),
    dict: lambda value, depth: b"F" + _write_table(value, _inside(depth)),
}
