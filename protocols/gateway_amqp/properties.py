"""The properties of a message on the wire: the flags and values after the body size in a content header (4.2.6.1).

``raw`` is always these bytes, flags included. Reading refuses what RabbitMQ cannot read, and text that is not UTF-8.
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
    Timestamp,
    datetime_of,
    decode_table,
    encode_short_text,
    encode_table,
    read_short_text,
    seconds_of,
)

Reader: TypeAlias = Callable[[bytes, int], tuple[Any, int]]
"""(raw, position) -> (value, where the next property starts)."""

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


def _read_table(raw: bytes, position: int) -> tuple[bytes, int]:
    end = check_table(raw, position)
    return raw[position:end], end


class BasicProperty(NamedTuple):
    """A property of class basic: its flag, how it is read into plain numbers and bytes, and how it is written."""

    flag: int
    name: str
    read: Reader
    write: Callable[[Any], bytes]


def _text(flag: int, name: str) -> BasicProperty:
    return BasicProperty(flag, name, _read_text, encode_short_text)


def _octet(flag: int, name: str) -> BasicProperty:
    return BasicProperty(flag, name, _read_octet, lambda number: bytes((number,)))


PROPERTIES: Final = (
    _text(0x8000, "content_type"),
    _text(0x4000, "content_encoding"),
    BasicProperty(0x2000, "headers", _read_table, encode_table),
    _octet(0x1000, "delivery_mode"),
    _octet(0x0800, "priority"),
    _text(0x0400, "correlation_id"),
    _text(0x0200, "reply_to"),
    _text(0x0100, "expiration"),
    _text(0x0080, "message_id"),
    BasicProperty(0x0040, "timestamp", _read_seconds, lambda time: _TIME.pack(seconds_of(time))),
    _text(0x0020, "type"),
    _text(0x0010, "user_id"),
    _text(0x0008, "app_id"),
    _text(0x0004, "cluster_id"),
)


def decode_properties(raw: bytes) -> Properties:
    """Read all properties; a timestamp that no datetime can hold reads as none.

    :raises MalformedField: and nothing else.
    """
    values = scan_properties(raw)
    if "headers" in values:
        values["headers"], _ = decode_table(values["headers"])
    if "timestamp" in values:
        time = datetime_of(values["timestamp"])
        values["timestamp"] = None if isinstance(time, Timestamp) else time
    return Properties(**values)


def encode_properties(properties: Properties) -> bytes:
    """Write flags and values of the properties that are set; empty headers count as not set.

    :raises ValueError: for what AMQP cannot carry, see :func:`gateway_amqp.tables.encode_table`.
    """
    flags, parts = 0, []
    for flag, name, _, write in PROPERTIES:
        value = getattr(properties, name)
        if value is not None and value != {}:
            flags |= flag
            parts.append(write(value))
    return _FLAGS.pack(flags) + b"".join(parts)


def scan_properties(raw: bytes) -> dict[str, Any]:
    """Read the properties that are set as they lie there: the headers as checked bytes, the timestamp in seconds.

    Whatever passes here, :func:`decode_properties` can decode.
    """
    flags, position = _read_flags(raw)
    values: dict[str, Any] = {}
    for name, read in _layout(flags):
        values[name], position = read(raw, position)
    if position != len(raw):
        raise MalformedField(f"{len(raw) - position} bytes follow the properties")
    return values


def splice_property(raw: bytes, name: str, encoded: bytes) -> bytes:
    """Return ``raw`` with the property set to these encoded bytes, or without it if there are none.

    The other properties keep their very bytes.
    """
    known, flags, position, end = _located(raw, name)
    changed = flags | known.flag if encoded else flags & ~known.flag
    return _FLAGS.pack(changed) + raw[2:position] + encoded + raw[end:]


def ends_at(raw: bytes, name: str) -> int:
    """Return where the value of a property ends in ``raw``."""
    return _located(raw, name)[3]


def _located(raw: bytes, name: str) -> tuple[BasicProperty, int, int, int]:
    """Return a property, all flags, and where its value begins and ends; at one place where it is not set."""
    flags, position = _read_flags(raw)
    for known in PROPERTIES:
        end = known.read(raw, position)[1] if flags & known.flag else position
        if known.name == name:
            return known, flags, position, end
        position = end
    raise ValueError(f"no property is called {name}")


def _read_flags(raw: bytes) -> tuple[int, int]:
    """Return the flags and where the values start.

    Class basic fills no second word of flags, so one that announces a property announces one nobody could skip.
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
    """Return the properties these flags announce; publishers use few combinations."""
    if flags & 0x0002:
        raise MalformedField(f"unknown property flags {flags:#06x} at byte 0")
    return tuple((name, read) for flag, name, read, _ in PROPERTIES if flags & flag)
