"""MQTT: what a client sends. Passwords and authentication data are hidden, and payloads unless they are kept."""

from collections.abc import Generator
from typing import Any, Final

from gateway.recording.parsing import Fields, Grammar, ParsingStep, Read, Skip, Unreadable

_CONNECT: Final = 1
_PUBLISH: Final = 3
_AUTH: Final = 15

_USERNAME: Final = 0x80
_PASSWORD: Final = 0x40
_WILL: Final = 0x04

_AUTHENTICATION_DATA: Final = 0x16
_USER_PROPERTY: Final = 0x26
_VARINT: Final = frozenset({0x0B})
_BINARY: Final = frozenset({0x03, 0x08, 0x09, 0x12, 0x15, 0x16, 0x1A, 0x1C, 0x1F})
_SIZES: Final = {
    **dict.fromkeys((0x01, 0x17, 0x19, 0x24, 0x25, 0x28, 0x29, 0x2A), 1),
    **dict.fromkeys((0x13, 0x21, 0x22, 0x23), 2),
    **dict.fromkeys((0x02, 0x11, 0x18, 0x27), 4),
}


def client_grammar(*, hides_bodies: bool) -> Grammar:
    """Return the grammar of a client's bytes."""
    version = 0
    while True:
        first = (yield Read(1))[0]
        kind, flags = first >> 4, first & 0x0F
        size = yield from _packet_size()
        fields = Fields(size)
        if kind == _CONNECT:
            version = yield from _connect(fields, hides_bodies)
        elif not version:
            return  # MQTT begins with CONNECT
        elif kind == _PUBLISH:
            yield from _publish(fields, flags, version, hides_bodies)
        elif kind == _AUTH and size:
            yield from fields.skip(1)
            if fields.left:
                yield from _properties(fields, hides_users=True)
            yield from fields.skip_rest(hides=True)
        else:
            yield Skip(size)


def _connect(fields: Fields, hides_bodies: bool) -> Generator[ParsingStep, Any, int]:
    name = yield from fields.read((yield from fields.number(2)))
    if name not in (b"MQTT", b"MQIsdp"):
        raise Unreadable
    level = yield from fields.number(1)
    flags = yield from fields.number(1)
    yield from fields.skip(2)  # keep alive
    version = level & 0x7F
    if version >= 5:
        yield from _properties(fields, hides_users=True)
    yield from _binary(fields)  # the client identifier
    if flags & _WILL:
        if version >= 5:
            yield from _properties(fields)
        yield from _binary(fields)
        yield from _binary(fields, hides=hides_bodies)
    if flags & _USERNAME and fields.left:  # in 3.1 the packet may end before
        yield from _binary(fields)
    if flags & _PASSWORD and fields.left:
        yield from _binary(fields, hides=True)
    yield from fields.skip_rest(hides=True)
    return max(version, 3)


def _publish(fields: Fields, flags: int, version: int, hides_bodies: bool) -> Grammar:
    yield from _binary(fields)
    if flags & 0x06:
        yield from fields.skip(2)
    if version >= 5:
        yield from _properties(fields)
    yield from fields.skip_rest(hides=hides_bodies)


def _properties(fields: Fields, *, hides_users: bool = False) -> Grammar:
    """Pass properties; ``hides_users`` hides the values of User Properties."""
    size = yield from _varint(fields)
    if size > fields.left:
        raise Unreadable
    inner = Fields(size)
    fields.left -= size
    while inner.left:
        number = yield from _varint(inner)
        if number == _USER_PROPERTY:
            yield from _binary(inner)
            yield from _binary(inner, hides=hides_users)
        elif number in _BINARY:
            yield from _binary(inner, hides=number == _AUTHENTICATION_DATA)
        elif number in _VARINT:
            yield from _varint(inner)
        elif number in _SIZES:
            yield from inner.skip(_SIZES[number])
        else:
            raise Unreadable


def _binary(fields: Fields, *, hides: bool = False) -> Grammar:
    yield from fields.skip((yield from fields.number(2)), hides=hides)


def _packet_size() -> Generator[ParsingStep, Any, int]:
    return (yield from _varint(Fields(4)))


def _varint(fields: Fields) -> Generator[ParsingStep, Any, int]:
    value = 0
    for place in range(4):
        octet = yield from fields.number(1)
        value |= (octet & 0x7F) << 7 * place
        if not octet & 0x80:
            return value
    raise Unreadable
