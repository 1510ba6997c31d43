"""Decoding of the server's packets: each is validated and shown as one line.

The lines are those of the conformance tables: ``SUBACK #1 0 1 8f``, ``PUBLISH q1 #1 dup retain a/b 'hi'``, an
acknowledgement with its reason unless it is success, then properties such as ``MESSAGE_EXPIRY_INTERVAL=10``. A Reason
String is kept apart, because tests do not check its wording. Decoding follows the tables of the specification,
independent of the codec.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from gateway_mqtt.codec.packet_types import PacketType
from gateway_mqtt.codec.properties import PropertyId
from gateway_mqtt.codec.reasons import ReasonCode

PropertyList: TypeAlias = list[tuple[PropertyId, Any]]
"""Properties in order; a value is a number, text, bytes or a pair of texts."""

REASON_STRING: Final = PropertyId.REASON_STRING

_ACKS: Final = {4: "PUBACK", 5: "PUBREC", 6: "PUBREL", 7: "PUBCOMP"}


@dataclass(frozen=True)
class ReceivedPacket:
    """One packet. ``size`` is its size in bytes; ``line`` its form in the tables."""

    line: str
    size: int = 0
    properties: PropertyList = field(default_factory=list)

    def __str__(self) -> str:
        fields = [f" {key.name}={_spelled(value)}" for key, value in self.properties if key is not REASON_STRING]
        return self.line + "".join(fields)

    def all(self, key: PropertyId) -> list[Any]:  # Any: whatever the property holds
        """Return every value of a property, in order."""
        return [value for name, value in self.properties if name is key]


CLOSED: Final = ReceivedPacket("closed")


class FrameReader:
    """Decodes the server's bytes; an invalid packet fails the test. ``version`` is 3, 4 or 5, as in CONNECT."""

    def __init__(self, version: int) -> None:
        self.version = version
        self._unread = b""

    def feed(self, data: bytes) -> list[ReceivedPacket]:
        """Return the packets that ``data`` completes."""
        self._unread += data
        packets = []
        while (end := _end_of_packet(self._unread)) is not None:
            packet, self._unread = self._unread[:end], self._unread[end:]
            packets.append(self._packet(packet))
        return packets

    @property
    def is_complete(self) -> bool:
        """Whether no packet is incomplete."""
        return not self._unread

    def _packet(self, packet: bytes) -> ReceivedPacket:
        kind, flags = packet[0] >> 4, packet[0] & 0x0F
        reader = _Reader(packet)
        if kind == PacketType.PUBLISH:
            line, properties = self._publish(flags, reader)
        else:
            assert flags == (2 if kind == PacketType.PUBREL else 0), f"flags {flags:#x}"  # MQTT-2.1.3-1
            line, properties = _READERS[kind](self, reader)
        assert reader.is_at_end, f"bytes follow {line}"
        return ReceivedPacket(line, len(packet), properties)

    def _publish(self, flags: int, reader: "_Reader") -> tuple[str, PropertyList]:
        qos = flags >> 1 & 3
        assert qos < 3  # MQTT-3.3.1-4
        assert qos or not flags & 8  # MQTT-3.3.1-2
        topic = reader.text()
        packet_id = reader.u16() if qos else None
        assert packet_id != 0  # MQTT-2.2.1-4
        properties = self._properties(reader)
        marks = [f"q{qos} #{packet_id}"] if qos else []
        marks += ["dup"] if flags & 8 else []
        marks += ["retain"] if flags & 1 else []
        return " ".join(["PUBLISH", *marks, topic, repr(reader.rest())[1:]]), properties

    def _connack(self, reader: "_Reader") -> tuple[str, PropertyList]:
        flags, code = reader.u8(), reader.u8()
        assert flags in (0, 1)  # MQTT-3.2.2-1
        properties = self._properties(reader) if self.version == 5 else []
        line = "CONNACK present" if flags else "CONNACK"
        if not code:
            return line, properties
        return f"{line} {ReasonCode(code).name if self.version == 5 else code}", properties

    def _ack(self, name: str, reader: "_Reader") -> tuple[str, PropertyList]:
        line = f"{name} #{reader.u16()}"
        if reader.is_at_end:
            return line, []
        assert self.version == 5
        reason = ReasonCode(reader.u8())
        properties = [] if reader.is_at_end else self._properties(reader)
        return line + (f" {reason.name}" if reason else ""), properties

    def _suback(self, reader: "_Reader") -> tuple[str, PropertyList]:
        packet_id, properties = reader.u16(), self._properties(reader)
        codes = reader.rest()
        assert codes  # MQTT-3.8.4-6
        return f"SUBACK #{packet_id} {' '.join(f'{code:x}' for code in codes)}", properties

    def _unsuback(self, reader: "_Reader") -> tuple[str, PropertyList]:
        packet_id, properties = reader.u16(), self._properties(reader)
        codes = reader.rest()
        assert bool(codes) == (self.version == 5)
        return " ".join([f"UNSUBACK #{packet_id}", *(f"{code:x}" for code in codes)]), properties

    def _pingresp(self, reader: "_Reader") -> tuple[str, PropertyList]:
        return "PINGRESP", []

    def _reasoned(self, name: str, reader: "_Reader") -> tuple[str, PropertyList]:
        assert self.version == 5
        reason = ReasonCode(0 if reader.is_at_end else reader.u8())
        properties = [] if reader.is_at_end else self._properties(reader)
        return f"{name} {reason.name}", properties

    def _properties(self, reader: "_Reader") -> PropertyList:
        if self.version < 5:
            return []
        end = reader.varint() + reader.at
        properties: PropertyList = []
        while reader.at < end:
            key = PropertyId(reader.varint())
            properties.append((key, _VALUES[key](reader)))
        assert reader.at == end
        return properties


class _Reader:
    """Decodes values of a packet in sequence, after its fixed header."""

    def __init__(self, packet: bytes) -> None:
        self._packet = packet
        self.at = 1
        self.varint()

    @property
    def is_at_end(self) -> bool:
        return self.at == len(self._packet)

    def take(self, size: int) -> bytes:
        assert self.at + size <= len(self._packet), "the packet is shorter than its fields"
        self.at += size
        return self._packet[self.at - size : self.at]

    def rest(self) -> bytes:
        return self.take(len(self._packet) - self.at)

    def u8(self) -> int:
        return self.take(1)[0]

    def u16(self) -> int:
        return int.from_bytes(self.take(2), "big")

    def u32(self) -> int:
        return int.from_bytes(self.take(4), "big")

    def binary(self) -> bytes:
        return self.take(self.u16())

    def text(self) -> str:
        text = self.binary().decode()
        assert "\0" not in text  # MQTT-1.5.4-2
        return text

    def pair(self) -> tuple[str, str]:
        return self.text(), self.text()

    def varint(self) -> int:
        value = 0
        for place in range(4):
            octet = self.u8()
            value |= (octet & 0x7F) << 7 * place
            if octet < 0x80:
                assert octet or not place  # MQTT-1.5.5-1
                return value
        raise AssertionError("a variable byte integer of more than four bytes")


def _end_of_packet(data: bytes) -> int | None:
    """Return the end of the first packet; ``None`` if it is incomplete."""
    length = 0
    for place, octet in enumerate(data[1:5]):
        length |= (octet & 0x7F) << 7 * place
        if octet < 0x80:
            end = place + 2 + length
            return end if end <= len(data) else None
    assert len(data) < 5, "a remaining length of more than four bytes"
    return None


def _spelled(value: Any) -> str:  # Any: whatever the property holds
    return repr(value)[1:] if isinstance(value, bytes) else repr(value)


_READERS: Final[dict[int, Callable[[FrameReader, _Reader], tuple[str, PropertyList]]]] = {
    PacketType.CONNACK: FrameReader._connack,
    **{kind: lambda decoder, reader, name=name: decoder._ack(name, reader) for kind, name in _ACKS.items()},  # type: ignore[misc]
    PacketType.SUBACK: FrameReader._suback,
    PacketType.UNSUBACK: FrameReader._unsuback,
    PacketType.PINGRESP: FrameReader._pingresp,
    PacketType.DISCONNECT: lambda decoder, reader: decoder._reasoned("DISCONNECT", reader),
    PacketType.AUTH: lambda decoder, reader: decoder._reasoned("AUTH", reader),
}

_OCTETS: Final = (0x01, 0x17, 0x19, 0x24, 0x25, 0x28, 0x29, 0x2A)
_U16S: Final = (0x13, 0x21, 0x22, 0x23)
_U32S: Final = (0x02, 0x11, 0x18, 0x27)
_TEXTS: Final = (0x03, 0x08, 0x12, 0x15, 0x1A, 0x1C, 0x1F)
_BINARIES: Final = (0x09, 0x16)

#: Table 2-4.
_VALUES: Final[dict[int, Callable[[_Reader], Any]]] = {
    **dict.fromkeys(_OCTETS, _Reader.u8),
    **dict.fromkeys(_U16S, _Reader.u16),
    **dict.fromkeys(_U32S, _Reader.u32),
    **dict.fromkeys(_TEXTS, _Reader.text),
    **dict.fromkeys(_BINARIES, _Reader.binary),
    0x0B: _Reader.varint,
    0x26: _Reader.pair,
}
assert len(_VALUES) == len(PropertyId)
