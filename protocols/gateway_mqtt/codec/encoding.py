"""Packets a server sends, as bytes, but for PUBLISH. A version is 3 for MQTT 3.1, 4 for 3.1.1 and 5 for 5.0.

Properties go to clients of 5.0; to others every writer leaves them out, so that callers need not ask who is there.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from gateway_mqtt.codec.data_types import varint
from gateway_mqtt.codec.packet_types import PacketType
from gateway_mqtt.codec.properties import Properties, encode_properties
from gateway_mqtt.codec.reasons import CONNACK_3, ReasonCode

PINGRESP: Final = b"\xd0\x00"

#: What comes before the packet identifier in acknowledgements, of any version, that say nothing else. PUBREL alone has
#: a flag set (MQTT-3.6.1-1).
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

#: A SUBACK of 3.1.1 has one code for every failure (3.1.1: 3.9.3). 3.1 knows none; there it is the least of the evils.
_FAILURE_3: Final = 0x80


def packet(first_byte: int, body: bytes) -> bytes:
    """Return a whole packet: its first byte, the remaining length and the body."""
    return bytes((first_byte,)) + varint(len(body)) + body


def connack(version: int, session_present: bool, reason: ReasonCode, properties: Properties | None = None) -> bytes:
    """Write a CONNACK. A refusal never says that there is a session (MQTT-3.2.2-6), and 3.1 has no such flag.

    Empty where 3.x has no return code for the reason: then the connection closes without a word (3.1.1: 3.2.2-6).
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
    """Write PUBACK, PUBREC, PUBREL or PUBCOMP, in four bytes whenever they say it all (3.4.2.1)."""
    head = _ACK_HEADS[packet_type]
    if version < 5 or not (reason or properties):
        return head + packet_id.to_bytes(2, "big")
    body = packet_id.to_bytes(2, "big") + bytes((reason,))
    return packet(head[0], body + encode_properties(properties) if properties else body)


def suback(version: int, packet_id: int, reasons: Iterable[ReasonCode], properties: Properties | None = None) -> bytes:
    """Write a SUBACK: for each filter the QoS granted, or why it was refused."""
    body = packet_id.to_bytes(2, "big")
    if version < 5:
        return packet(0x90, body + bytes(min(reason, _FAILURE_3) for reason in reasons))
    return packet(0x90, body + encode_properties(properties) + bytes(reasons))


def unsuback(
    version: int, packet_id: int, reasons: Iterable[ReasonCode], properties: Properties | None = None
) -> bytes:
    """Write an UNSUBACK; before 5.0 it says nothing of what became of each filter."""
    body = packet_id.to_bytes(2, "big")
    if version < 5:
        return packet(0xB0, body)
    return packet(0xB0, body + encode_properties(properties) + bytes(reasons))


def disconnect(version: int, reason: ReasonCode, properties: Properties | None = None) -> bytes:
    """Write a DISCONNECT; empty before 5.0, when servers had none and just closed."""
    return b"" if version < 5 else packet(0xE0, _reasoned(reason, properties))


def auth(reason: ReasonCode, properties: Properties | None = None) -> bytes:
    """Write an AUTH, of 5.0 always."""
    return packet(0xF0, _reasoned(reason, properties))


def _reasoned(reason: ReasonCode, properties: Properties | None) -> bytes:
    """Return a reason and properties, each left out if nothing else is said (3.14.2.1, 3.15.2.1)."""
    if properties:
        return bytes((reason,)) + encode_properties(properties)
    return bytes((reason,)) if reason else b""
