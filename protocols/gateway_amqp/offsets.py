"""Inserts the header ``x-stream-offset`` into the encoded properties of a stream's messages."""

from struct import Struct
from typing import Final

from gateway.kernel.messages.long import Long
from gateway_amqp.properties import ends_at, scan_properties, splice_property
from gateway_amqp.splices import EMPTY_TABLE, with_field

NAME: Final = "x-stream-offset"

#: The encoded field before its number: the length of the name, the name, the type of a signed 64-bit number.
_FIELD: Final = bytes((len(NAME),)) + NAME.encode() + b"l"
_NUMBER_SIZE: Final = 8
_FIELD_SIZE: Final = len(_FIELD) + _NUMBER_SIZE
_ALONE: Final = _FIELD_SIZE.to_bytes(4, "big") + _FIELD

_flags = Struct(">H")
_table_size = Struct(">I")

#: Property flags: those of short strings before the headers, the headers, and a continuation flag.
_CONTENT_TYPE, _CONTENT_ENCODING, _HEADERS, _MORE = 0x8000, 0x4000, 0x2000, 0x0001


def split_around_offset(properties: bytes) -> tuple[bytes, bytes]:
    """Return well-formed properties with an offset as the last header, split before and after its number.

    Optimised for messages with an id each, whose properties do not repeat.
    """
    (flags,) = _flags.unpack_from(properties)
    if flags & _MORE or _FIELD[:-1] in properties:
        return _spliced(properties)
    start = 2
    for flag in (_CONTENT_TYPE, _CONTENT_ENCODING):
        if flags & flag:
            start += 1 + properties[start]
    if not flags & _HEADERS:
        return _flags.pack(flags | _HEADERS) + properties[2:start] + _ALONE, properties[start:]
    (size,) = _table_size.unpack_from(properties, start)
    end = start + 4 + size
    table = _table_size.pack(size + _FIELD_SIZE) + properties[start + 4 : end]
    return properties[:start] + table + _FIELD, properties[end:]


def _spliced(properties: bytes) -> tuple[bytes, bytes]:
    """Return the same in the general case, in which the header may exist already and is replaced."""
    table = scan_properties(properties).get("headers", EMPTY_TABLE)
    with_offset = splice_property(properties, "headers", with_field(table, NAME, Long(0)))
    end = ends_at(with_offset, "headers")
    return with_offset[: end - _NUMBER_SIZE], with_offset[end:]
