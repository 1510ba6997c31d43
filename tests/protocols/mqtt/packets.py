"""Whole client packets as bytes, for each protocol version, encoded by hand from the specification.

``FIVE``, ``FOUR`` and ``THREE`` write MQTT 5.0, 3.1.1 and 3.1. Properties are given as concatenated bytes and omitted
before 5.0, so a test can be the same for all versions. Invalid values are encoded as given.
"""

import struct
from typing import Final, TypeAlias

from tests.protocols.mqtt.client_packets import text, user_property

__all__ = ["FIVE", "FOUR", "THREE", "Properties", "Will", "Writer", "text", "user_property"]

Properties: TypeAlias = bytes

NAMES: Final = {3: "MQIsdp", 4: "MQTT", 5: "MQTT"}


# ---- Properties (Table 2-4) -----------------------------------------------------------------------------------------


def payload_format(value: int) -> Properties:
    return bytes((0x01, value))


def message_expiry(seconds: int) -> Properties:
    return b"\x02" + struct.pack(">I", seconds)


def content_type(kind: str | bytes) -> Properties:
    return b"\x03" + text(kind)


def response_topic(topic: str | bytes) -> Properties:
    return b"\x08" + text(topic)


def correlation_data(data: bytes) -> Properties:
    return b"\x09" + text(data)


def subscription_identifier(number: int) -> Properties:
    return b"\x0b" + varint(number)


def session_expiry(seconds: int) -> Properties:
    return b"\x11" + struct.pack(">I", seconds)


def authentication(method: str, data: bytes | None = None) -> Properties:
    return b"\x15" + text(method) + (b"" if data is None else b"\x16" + text(data))


def request_problem_information(value: int) -> Properties:
    return bytes((0x17, value))


def will_delay(seconds: int) -> Properties:
    return b"\x18" + struct.pack(">I", seconds)


def request_response_information(value: int) -> Properties:
    return bytes((0x19, value))


def reason_string(reason: str | bytes) -> Properties:
    return b"\x1f" + text(reason)


def receive_maximum(count: int) -> Properties:
    return b"\x21" + struct.pack(">H", count)


def topic_alias_maximum(count: int) -> Properties:
    return b"\x22" + struct.pack(">H", count)


def topic_alias(alias: int) -> Properties:
    return b"\x23" + struct.pack(">H", alias)


def maximum_packet_size(size: int) -> Properties:
    return b"\x27" + struct.pack(">I", size)


# ---- Packets --------------------------------------------------------------------------------------------------------


def varint(number: int) -> bytes:
    octets = bytearray()
    while number > 0x7F:
        octets.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*octets, number))


def packet(first_byte: int, body: bytes = b"") -> bytes:
    """Return a packet with any content."""
    return bytes((first_byte,)) + varint(len(body)) + body


class Will:
    """A will in a CONNECT."""

    def __init__(
        self,
        topic: str | bytes,
        payload: bytes = b"gone",
        qos: int = 0,
        retain: bool = False,
        properties: Properties = b"",
    ) -> None:
        self.flags = 0x04 | qos << 3 | (0x20 if retain else 0)
        self._fields = text(topic) + text(payload)
        self._properties = varint(len(properties)) + properties

    def fields(self, version: int) -> bytes:
        """Return its fields in the payload."""
        return (self._properties if version == 5 else b"") + self._fields


class Writer:
    """Encodes packets of one version: 3 is MQTT 3.1, 4 is 3.1.1 and 5 is 5.0."""

    def __init__(self, version: int) -> None:
        self.version = version

    def connect(
        self,
        client_id: str | bytes = "client",
        *,
        is_clean: bool = True,
        keep_alive: int = 60,
        properties: Properties = b"",
        will: Will | None = None,
        username: str | bytes | None = None,
        password: bytes | None = None,
        name: str | bytes | None = None,
        level: int | None = None,
        flags: int = 0,
    ) -> bytes:
        """Return a CONNECT; ``flags`` are set in addition to those of the other arguments."""
        flags |= 0x02 if is_clean else 0
        payload = text(client_id)
        if will is not None:
            flags |= will.flags
            payload += will.fields(self.version)
        if username is not None:
            flags |= 0x80
            payload += text(username)
        if password is not None:
            flags |= 0x40
            payload += text(password)
        return self.connect_of(flags, payload, keep_alive=keep_alive, properties=properties, name=name, level=level)

    def connect_of(
        self,
        flags: int,
        payload: bytes,
        *,
        keep_alive: int = 60,
        properties: Properties = b"",
        name: str | bytes | None = None,
        level: int | None = None,
    ) -> bytes:
        """Return a CONNECT with these flags and this payload, which may contradict each other."""
        head = text(NAMES[self.version] if name is None else name)
        head += struct.pack(">BBH", self.version if level is None else level, flags, keep_alive)
        return packet(0x10, head + self.block(properties) + payload)

    def publish(
        self,
        topic: str | bytes,
        payload: bytes = b"hi",
        *,
        qos: int = 0,
        id: int = 0,
        retain: bool = False,
        dup: bool = False,
        properties: Properties = b"",
    ) -> bytes:
        flags = (8 if dup else 0) | qos << 1 | (1 if retain else 0)
        packet_id = struct.pack(">H", id) if qos else b""
        return packet(0x30 | flags, text(topic) + packet_id + self.block(properties) + payload)

    def puback(self, id: int, reason: int | None = None, properties: Properties | None = None) -> bytes:
        return self.ack(0x40, id, reason, properties)

    def pubrec(self, id: int, reason: int | None = None, properties: Properties | None = None) -> bytes:
        return self.ack(0x50, id, reason, properties)

    def pubrel(self, id: int, reason: int | None = None, properties: Properties | None = None) -> bytes:
        return self.ack(0x62, id, reason, properties)

    def pubcomp(self, id: int, reason: int | None = None, properties: Properties | None = None) -> bytes:
        return self.ack(0x70, id, reason, properties)

    def ack(self, first_byte: int, id: int, reason: int | None = None, properties: Properties | None = None) -> bytes:
        """Return an acknowledgement; arguments that are ``None`` are omitted."""
        return packet(first_byte, struct.pack(">H", id) + self._reasoned(reason, properties))

    def subscribe(
        self, *filters: tuple[str | bytes, int], id: int = 1, properties: Properties = b"", first_byte: int = 0x82
    ) -> bytes:
        """Return a SUBSCRIBE; each filter has an options byte, see ``options``."""
        requests = b"".join(text(filter) + bytes((option,)) for filter, option in filters)
        return packet(first_byte, struct.pack(">H", id) + self.block(properties) + requests)

    def unsubscribe(
        self, *filters: str | bytes, id: int = 2, properties: Properties = b"", first_byte: int = 0xA2
    ) -> bytes:
        return packet(first_byte, struct.pack(">H", id) + self.block(properties) + b"".join(map(text, filters)))

    def pingreq(self) -> bytes:
        return packet(0xC0)

    def disconnect(self, reason: int | None = None, properties: Properties | None = None) -> bytes:
        return packet(0xE0, self._reasoned(reason, properties))

    def auth(self, reason: int | None = None, properties: Properties | None = None) -> bytes:
        return packet(0xF0, self._reasoned(reason, properties))

    def block(self, properties: Properties) -> bytes:
        """Return properties with their length; empty before 5.0."""
        return varint(len(properties)) + properties if self.version == 5 else b""

    def _reasoned(self, reason: int | None, properties: Properties | None) -> bytes:
        """Return reason and properties at the end of a packet, each omitted if ``None``."""
        if self.version < 5 or reason is None:
            return b""
        return bytes((reason,)) + (b"" if properties is None else self.block(properties))


def options(qos: int, *, no_local: bool = False, as_published: bool = False, retain_handling: int = 0) -> int:
    """Return the options byte of a subscription (3.8.3.1); before 5.0 it is only the QoS."""
    return qos | (4 if no_local else 0) | (8 if as_published else 0) | retain_handling << 4


FIVE: Final = Writer(5)
FOUR: Final = Writer(4)
THREE: Final = Writer(3)
WRITERS: Final = {5: FIVE, 4: FOUR, 3: THREE}
