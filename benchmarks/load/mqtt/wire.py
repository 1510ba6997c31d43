"""The MQTT 3.1.1 bytes that the load generator sends and expects, built before the measurement.

The product's codec is deliberately not used: a generator that shared it would share its errors.
"""

import struct
from typing import Final

PINGREQ, PINGRESP, DISCONNECT = b"\xc0\x00", b"\xd0\x00", b"\xe0\x00"

#: The first bytes of packets; PUBLISH without its flags.
CONNECT, CONNACK, PUBLISH, SUBSCRIBE, SUBACK = 0x10, 0x20, 0x30, 0x82, 0x90
PUBACK, PUBREC, PUBREL, PUBCOMP = 0x40, 0x50, 0x62, 0x70

#: An acknowledgement: first byte, length, packet identifier.
ACK_BYTES: Final = 4
CONNACK_BYTES: Final = 4


def packet(first: int, body: bytes) -> bytes:
    """Prepend the fixed header to a body (MQTT 3.1.1, 2.2)."""
    length, octets = len(body), bytearray()
    while length > 0x7F:
        octets.append(length & 0x7F | 0x80)
        length >>= 7
    octets.append(length)
    return bytes([first]) + octets + body


def string(octets: bytes) -> bytes:
    """Encode a string or binary data."""
    return struct.pack(">H", len(octets)) + octets


def connect(client_id: str, *, is_clean: bool) -> bytes:
    """Build a CONNECT without keep alive: a ping would falsify the byte count."""
    return packet(CONNECT, string(b"MQTT") + bytes([4, is_clean << 1]) + bytes(2) + string(client_id.encode()))


def subscribe(topic_filter: str, qos: int) -> bytes:
    """Build a SUBSCRIBE to one filter."""
    return packet(SUBSCRIBE, b"\x00\x01" + string(topic_filter.encode()) + bytes([qos]))


def publish(topic: str, body: bytes, qos: int, packet_id: int = 0, *, is_retained: bool = False) -> bytes:
    """Build one PUBLISH; only QoS 1 and 2 have a packet identifier."""
    identifier = struct.pack(">H", packet_id) if qos else b""
    return packet(PUBLISH | qos << 1 | is_retained, string(topic.encode()) + identifier + body)


def identifier_at(topic: str, body: bytes, qos: int) -> int:
    """Return the position of the packet identifier in such a PUBLISH."""
    return len(publish(topic, body, qos)) - len(body) - 2


def identifiers(count: int) -> bytes:
    """Return the packet identifiers from 1 on, two bytes each."""
    return struct.pack(f">{count}H", *range(1, count + 1))


def acks(first: int, packet_ids: bytes) -> bytes:
    """Build acknowledgements of one kind, one for each packet identifier of two bytes.

    They are written column by column: one by one would make the generator slower than the brokers it measures.
    """
    block = bytearray(bytes([first, 2, 0, 0]) * (len(packet_ids) // 2))
    block[2::ACK_BYTES] = packet_ids[0::2]
    block[3::ACK_BYTES] = packet_ids[1::2]
    return bytes(block)
