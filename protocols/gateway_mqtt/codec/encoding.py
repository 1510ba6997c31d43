"""Encoders of the packets a server sends, except PUBLISH. Versions: 3 is MQTT 3.1, 4 is 3.1.1, 5 is 5.0.

Every encoder omits properties before 5.0, so callers need not check the version.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from gateway_mqtt.codec.data_types import varint
from gateway_mqtt.codec.packet_types import PacketType
from gateway_mqtt.codec.properties import Properties, encode_properties
from gateway_mqtt.codec.reasons import CONNACK_3, ReasonCode

PINGRESP: Final = b"\xd0\x00"

#: The bytes before the packet identifier in acknowledgements without reason and properties, in any version. Only
#: PUBREL has a flag set (MQTT-3.6.1-1).
PUBACK: Final = b"\x40\x02"
PUBREC: Final = b"\x50\x02"
PUBREL: Final = b"\x62\x02"
PUBCOMP: Final = b"\x70\x02"

_ACK_HEADS: Final[Mapping[int, bytes]] = {
    PacketType.PUBACK: PUBACK,
    PacketType.PUBREC: PUBREC,
    PacketType.PUBREL: PUBREL,
    PacketType.PUBCOMP: PUBCOMP,
}

#: The only failure code in a SUBACK of 3.1.1 (3.1.1: 3.9.3). 3.1 defines none; its clients get the same code.
_FAILURE_3: Final = 0x80


def packet(first_byte: int, body: bytes) -> bytes:
    """Encode a whole packet: its first byte, the remaining length and the body."""
    return bytes((first_byte,)) + varint(len(body)) + body


def connack(version: int, session_present: bool, reason: ReasonCode, properties: Properties | None = None) -> bytes:
    """Encode a CONNACK. Session Present is 0 in a refusal (MQTT-3.2.2-6), and in 3.1, which does not have it.

    Empty if 3.x has no return code for the reason: the connection then closes without an answer (3.1.1: 3.2.2-6).
    """
    is_present = session_present and version > 3 and not reason.is_error
    if version < 5:
        code = CONNACK_3.get(reason)
        return b"" if code is None else bytes((0x20, 2, is_present, code))
    return packet(0x20, bytes((is_present, reason)) + encode_properties(properties))


def ack(
    packet_type: int,
    version: int,
    packet_id: int,
    reason: ReasonCode = ReasonCode.SUCCESS,
    properties: Properties | None = None,
) -> bytes:
    """Encode PUBACK, PUBREC, PUBREL or PUBCOMP, in four bytes if reason and properties can be omitted (3.4.2.1)."""
    head = _ACK_HEADS[packet_type]
    if version < 5 or not (reason or properties):
        return head + packet_id.to_bytes(2, "big")
    body = packet_id.to_bytes(2, "big") + bytes((reason,))
    return packet(head[0], body + encode_properties(properties) if properties else body)


def suback(version: int, packet_id: int, reasons: Iterable[ReasonCode], properties: Properties | None = None) -> bytes:
    """Encode a SUBACK: for each filter the granted QoS or the reason of the refusal."""
    body = packet_id.to_bytes(2, "big")
    if version < 5:
        return packet(0x90, body + bytes(min(reason, _FAILURE_3) for reason in reasons))
    return packet(0x90, body + encode_properties(properties) + bytes(reasons))


def unsuback(
    version: int, packet_id: int, reasons: Iterable[ReasonCode], properties: Properties | None = None
) -> bytes:
    """Encode an UNSUBACK; before 5.0 it has no reason codes."""
    body = packet_id.to_bytes(2, "big")
    if version < 5:
        return packet(0xB0, body)
    return packet(0xB0, body + encode_properties(properties) + bytes(reasons))


def disconnect(version: int, reason: ReasonCode, properties: Properties | None = None) -> bytes:
    """Encode a DISCONNECT; empty before 5.0, where only clients send it."""
    return b"" if version < 5 else packet(0xE0, _reasoned(reason, properties))


def auth(reason: ReasonCode, properties: Properties | None = None) -> bytes:
    """Encode an AUTH; it exists in 5.0 only."""
    return packet(0xF0, _reasoned(reason, properties))


def _reasoned(reason: ReasonCode, properties: Properties | None) -> bytes:
    """Return reason and properties; each is omitted if it and the rest are defaults (3.14.2.1, 3.15.2.1)."""
    if properties:
        return bytes((reason,)) + encode_properties(properties)
    return bytes((reason,)) if reason else b""
