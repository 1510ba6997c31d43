"""The packets that a client sends, as bytes."""

from collections.abc import Sequence
from typing import Any

from gateway.simulation.clients.mqtt.packets import (
    CONTENT_TYPE,
    EXPIRY_INTERVAL,
    FORMS,
    RECEIVE_MAXIMUM,
    WILL_DELAY,
    Login,
    PacketKind,
    PropertyList,
)


def connect(login: Login) -> bytes:
    """Return a CONNECT (3.1)."""
    will = login.will
    flags = login.is_clean << 1 | 0xC0
    payload = _text(login.client_id)
    if will is not None:
        flags |= 4 | will.qos << 3 | will.is_retained << 5
        if login.version == 5:
            payload += _properties([(WILL_DELAY, will.delay_s)])
        payload += _text(will.topic) + _binary(will.payload)
    payload += _text(login.user) + _text(login.user)
    head = (
        _text("MQIsdp" if login.version == 3 else "MQTT")
        + bytes((login.version, flags))
        + login.keep_alive_s.to_bytes(2, "big")
    )
    if login.version == 5:
        properties: list[tuple[int, Any]] = [(EXPIRY_INTERVAL, login.expiry_s)]
        if login.receive_maximum is not None:
            properties.append((RECEIVE_MAXIMUM, login.receive_maximum))
        head += _properties(properties)
    return _packet(PacketKind.CONNECT, 0, head + payload)


def publish(
    version: int,
    topic: str,
    payload: bytes,
    *,
    qos: int = 0,
    packet_id: int = 0,
    is_retained: bool = False,
    is_dup: bool = False,
    content_type: str | None = None,
) -> bytes:
    """Return a PUBLISH (3.3); the content type is for 5."""
    head = _text(topic)
    if qos:
        head += packet_id.to_bytes(2, "big")
    if version == 5:
        head += _properties([] if content_type is None else [(CONTENT_TYPE, content_type)])
    return _packet(PacketKind.PUBLISH, is_dup << 3 | qos << 1 | is_retained, head + payload)


def acknowledge(kind: PacketKind, packet_id: int, reason: int = 0) -> bytes:
    """Return a PUBACK, PUBREC, PUBREL or PUBCOMP (3.4 to 3.7); a reason other than 0 is for 5."""
    body = packet_id.to_bytes(2, "big") + (bytes((reason,)) if reason else b"")
    return _packet(kind, 2 if kind is PacketKind.PUBREL else 0, body)


def subscribe(version: int, packet_id: int, filters: Sequence[tuple[str, int]]) -> bytes:
    """Return a SUBSCRIBE (3.8) of filters with their options."""
    body = packet_id.to_bytes(2, "big") + (_properties([]) if version == 5 else b"")
    return _packet(
        PacketKind.SUBSCRIBE, 2, body + b"".join(_text(each) + bytes((options,)) for each, options in filters)
    )


def unsubscribe(version: int, packet_id: int, filters: Sequence[str]) -> bytes:
    """Return an UNSUBSCRIBE (3.10)."""
    body = packet_id.to_bytes(2, "big") + (_properties([]) if version == 5 else b"")
    return _packet(PacketKind.UNSUBSCRIBE, 2, body + b"".join(_text(each) for each in filters))


def ping() -> bytes:
    """Return a PINGREQ (3.12)."""
    return _packet(PacketKind.PINGREQ, 0, b"")


def disconnect(version: int, reason: int = 0) -> bytes:
    """Return a DISCONNECT (3.14)."""
    return _packet(PacketKind.DISCONNECT, 0, bytes((reason,)) if version == 5 and reason else b"")


def _packet(kind: PacketKind, flags: int, body: bytes) -> bytes:
    return bytes((kind << 4 | flags,)) + _variable(len(body)) + body


def _variable(number: int) -> bytes:
    pieces = bytearray()
    while True:
        number, low = divmod(number, 128)
        pieces.append(low | (128 if number else 0))
        if not number:
            return bytes(pieces)


def _binary(value: bytes) -> bytes:
    return len(value).to_bytes(2, "big") + value


def _text(value: str) -> bytes:
    return _binary(value.encode())


def _properties(properties: PropertyList) -> bytes:
    block = b""
    for number, value in properties:
        form = FORMS[number]
        block += bytes((number,)) + (value.to_bytes(form, "big") if isinstance(form, int) else _text(value))
    return _variable(len(block)) + block
