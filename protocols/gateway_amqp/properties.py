"""Codec of message properties: the flags and values after the body size in a content header (4.2.6.1).

``raw`` is always these bytes, flags included. Decoding refuses input that RabbitMQ cannot decode, and text that is not
UTF-8.
"""

from collections.abc import Callable
from functools import lru_cache
from struct import Struct
from typing import Any, Final, NamedTuple, TypeAlias

from gateway.kernel.messages.message import Properties
from gateway_amqp.splices import check_table
from gateway_amqp.tables import (
    CutShort,
    MalformedField,
    datetime_of,
    decode_table,
    encode_short_text,
    encode_table,
    read_short_text,
    seconds_of,
)
from gateway_amqp.timestamp import Timestamp

Reader: TypeAlias = Callable[[bytes, int], tuple[Any, int]]
"""(raw, position) -> (value, position of the next property)."""

_FLAGS: Final = Struct(">H")
_TIME: Final = Struct(">Q")
_MORE_FLAGS: Final = 0x0001


def _read_text(raw: bytes, position: int) -> tuple[str, int]:
    return read_short_text(raw, position, len(raw))


def _read_octet(raw: bytes, position: int) -> tuple[int, int]:
    if position >= len(raw):
        raise CutShort(f"the octet at byte {position} is missing")
    return raw[position], position + 1


def _read_seconds(raw: bytes, position: int) -> tuple[int, int]:
    if position + 8 > len(raw):
        raise CutShort(f"the timestamp at byte {position} is cut short")
    return _TIME.unpack_from(raw, position)[0], position + 8


def _skip_text(raw: bytes, position: int) -> int:
    return position + 1 + raw[position]


def _skip_table(raw: bytes, position: int) -> int:
    return position + 4 + int.from_bytes(raw[position : position + 4], "big")


def _read_table(raw: bytes, position: int) -> tuple[bytes, int]:
    end = check_table(raw, position)
    return raw[position:end], end


class BasicProperty(NamedTuple):
    """A property of class basic: its flag, its reader into plain numbers and bytes, and its writer.

    ``skip`` returns the position after its value in ``raw`` that was read before.
    """

    flag: int
    name: str
    read: Reader
    write: Callable[[Any], bytes]
    skip: Callable[[bytes, int], int]


def _text(flag: int, name: str) -> BasicProperty:
    return BasicProperty(flag, name, _read_text, encode_short_text, _skip_text)


def _octet(flag: int, name: str) -> BasicProperty:
    return BasicProperty(flag, name, _read_octet, lambda number: bytes((number,)), lambda raw, position: position + 1)


PROPERTIES: Final = (
    _text(0x8000, "content_type"),
    _text(0x4000, "content_encoding"),
    BasicProperty(0x2000, "headers", _read_table, encode_table, _skip_table),
    _octet(0x1000, "delivery_mode"),
    _octet(0x0800, "priority"),
    _text(0x0400, "correlation_id"),
    _text(0x0200, "reply_to"),
    _text(0x0100, "expiration"),
    _text(0x0080, "message_id"),
    BasicProperty(
        0x0040,
        "timestamp",
        _read_seconds,
        lambda time: _TIME.pack(seconds_of(time)),
        lambda raw, position: position + _TIME.size,
    ),
    _text(0x0020, "type"),
    _text(0x0010, "user_id"),
    _text(0x0008, "app_id"),
    _text(0x0004, "cluster_id"),
)


def decode_properties(raw: bytes) -> Properties:
    """Decode all properties; a timestamp out of the range of datetime is decoded as none.

    :raises MalformedField: and no other error.
    """
    values = scan_properties(raw)
    if "headers" in values:
        values["headers"], _ = decode_table(values["headers"])
    if "timestamp" in values:
        time = datetime_of(values["timestamp"])
        values["timestamp"] = None if isinstance(time, Timestamp) else time
    return Properties(**values)


def encode_properties(properties: Properties) -> bytes:
    """Encode the properties that are set; empty headers count as not set.

    :raises ValueError: for values that AMQP cannot encode, see :func:`gateway_amqp.tables.encode_table`.
    """
    flags, parts = 0, []
    for flag, name, _, write, _ in PROPERTIES:
        value = getattr(properties, name)
        if value is not None and value != {}:
            flags |= flag
            parts.append(write(value))
    return _FLAGS.pack(flags) + b"".join(parts)


def scan_properties(raw: bytes) -> dict[str, Any]:
    """Read the properties that are set without decoding them: the headers as validated bytes, the timestamp in seconds.

    :func:`decode_properties` can decode everything that is accepted here.
    """
    flags, position = _read_flags(raw)
    values: dict[str, Any] = {}
    for name, read in _layout(flags):
        values[name], position = read(raw, position)
    if position != len(raw):
        raise MalformedField(f"{len(raw) - position} bytes follow the properties")
    return values


def splice_property(raw: bytes, name: str, encoded: bytes) -> bytes:
    """Return ``raw`` with the property set to these encoded bytes, or removed if they are empty.

    The bytes of the other properties are unchanged. ``raw`` is that of a header, so it is valid.
    """
    known, flags, position, end = _located(raw, name)
    if position == end and not encoded:
        return raw
    changed = flags | known.flag if encoded else flags & ~known.flag
    return _FLAGS.pack(changed) + raw[2:position] + encoded + raw[end:]


def encoded_property(raw: bytes, name: str) -> bytes:
    """Return the encoded value of a property in valid ``raw``; empty if it is not set."""
    _, _, position, end = _located(raw, name)
    return raw[position:end]


def ends_at(raw: bytes, name: str) -> int:
    """Return the position after the value of a property in ``raw``."""
    return _located(raw, name)[3]


def _located(raw: bytes, name: str) -> tuple[BasicProperty, int, int, int]:
    """Return a property, all flags, and the bounds of its value; both bounds are equal if it is not set."""
    flags, position = _read_flags(raw)
    for known in PROPERTIES:
        end = known.skip(raw, position) if flags & known.flag else position
        if known.name == name:
            return known, flags, position, end
        position = end
    raise ValueError(f"no property is called {name}")


def _read_flags(raw: bytes) -> tuple[int, int]:
    """Return the flags and the position of the first value.

    Class basic needs no second word of flags: a flag in it announces an unknown property, which cannot be skipped.
    """
    if len(raw) < 2:
        raise CutShort("the property flags are cut short")
    flags = word = raw[0] << 8 | raw[1]
    position = 2
    while word & _MORE_FLAGS:
        if position + 2 > len(raw):
            raise CutShort("the property flags are cut short")
        (word,) = _FLAGS.unpack_from(raw, position)
        position += 2
        if word & ~_MORE_FLAGS:
            raise MalformedField(f"unknown property flags {word:#06x} at byte {position - 2}")
    return flags, position


@lru_cache(maxsize=256)
def _layout(flags: int) -> tuple[tuple[str, Reader], ...]:
    """Return the properties that these flags announce; publishers use few combinations."""
    if flags & 0x0002:
        raise MalformedField(f"unknown property flags {flags:#06x} at byte 0")
    return tuple((each.name, each.read) for each in PROPERTIES if flags & each.flag)
