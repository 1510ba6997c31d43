"""The packets that a broker sends, from its bytes."""

from collections.abc import Callable, Iterator
from typing import Any, Final

from gateway.simulation.clients.mqtt.packets import (
    BINARY,
    FORMS,
    PAIR,
    TEXT,
    VARIABLE,
    PacketKind,
    PropertyList,
    ReceivedPacket,
    UnreadablePacket,
)


class PacketReader:
    """Turns the broker's bytes into packets."""

    def __init__(self, version: int) -> None:
        self._version = version
        self._bytes = bytearray()

    def feed(self, data: bytes) -> Iterator[ReceivedPacket]:
        """Add bytes; yield each packet that they complete. :raises UnreadablePacket: for anything else."""
        self._bytes += data
        while (found := self._length()) is not None:
            start, end = found
            first, body = self._bytes[0], bytes(self._bytes[start:end])
            del self._bytes[:end]
            yield _read(self._version, first, body)

    def _length(self) -> tuple[int, int] | None:
        """Return where the body of the first packet begins and ends, if all of it is there."""
        length = 0
        for at, byte in enumerate(self._bytes[1:5], 1):
            length |= (byte & 0x7F) << 7 * (at - 1)
            if byte < 0x80:
                end = at + 1 + length
                return (at + 1, end) if len(self._bytes) >= end else None
        if len(self._bytes) >= 5:
            raise UnreadablePacket("a remaining length of more than four bytes")
        return None


class _Body:
    """The body of a packet, read from its beginning to its end."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def has_more(self) -> bool:
        """Whether something is left."""
        return self._at < len(self._data)

    def take(self, size: int) -> bytes:
        """Return the next bytes."""
        self._at += size
        if self._at > len(self._data):
            raise UnreadablePacket(f"the body ends early: {self._data!r}")
        return self._data[self._at - size : self._at]

    def number(self, size: int) -> int:
        """Return a number of some bytes."""
        return int.from_bytes(self.take(size), "big")

    def variable(self) -> int:
        """Return a variable byte integer."""
        number = shift = 0
        while (byte := self.number(1)) > 0x7F:
            number |= (byte & 0x7F) << shift
            shift += 7
        return number | byte << shift

    def binary(self) -> bytes:
        """Return binary data."""
        return self.take(self.number(2))

    def text(self) -> str:
        """Return a string."""
        return self.binary().decode()

    def rest(self) -> bytes:
        """Return everything that is left."""
        return self.take(len(self._data) - self._at)

    def properties(self) -> PropertyList:
        """Return the properties; none if the body ends here."""
        if not self.has_more:
            return ()
        block = _Body(self.take(self.variable()))
        found = []
        while block.has_more:
            number = block.variable()
            form = FORMS.get(number)
            if form is None:
                raise UnreadablePacket(f"a property {number}, which there is not")
            found.append((number, block.number(form) if isinstance(form, int) else _VALUES[form](block)))
        return tuple(found)


_VALUES: Final[dict[str, Callable[[_Body], Any]]] = {
    TEXT: _Body.text,
    BINARY: _Body.binary,
    VARIABLE: _Body.variable,
    PAIR: lambda body: (body.text(), body.text()),
}


def _read(version: int, first: int, data: bytes) -> ReceivedPacket:
    kind, flags, body = PacketKind(first >> 4), first & 0x0F, _Body(data)
    if kind is PacketKind.PUBLISH:
        return _read_publish(version, flags, body)
    if flags != (2 if kind is PacketKind.PUBREL else 0):
        raise UnreadablePacket(f"{kind.name} with flags {flags}")
    match kind:
        case PacketKind.CONNACK:
            is_present, reason = body.number(1), body.number(1)
            properties = body.properties() if version == 5 else ()
            packet = ReceivedPacket(kind, 0, (reason,), bool(is_present), properties=properties)
        case PacketKind.PUBACK | PacketKind.PUBREC | PacketKind.PUBREL | PacketKind.PUBCOMP:
            packet_id = body.number(2)
            reason = body.number(1) if version == 5 and body.has_more else 0
            packet = ReceivedPacket(kind, packet_id, (reason,), properties=body.properties() if version == 5 else ())
        case PacketKind.SUBACK | PacketKind.UNSUBACK:
            packet_id = body.number(2)
            properties = body.properties() if version == 5 else ()
            packet = ReceivedPacket(kind, packet_id, tuple(body.rest()) or (0,), properties=properties)
        case PacketKind.DISCONNECT if version == 5:
            reason = body.number(1) if body.has_more else 0
            packet = ReceivedPacket(kind, 0, (reason,), properties=body.properties())
        case PacketKind.PINGRESP:
            packet = ReceivedPacket(kind)
        case _:
            raise UnreadablePacket(f"{kind.name} from a broker")
    if body.has_more:
        raise UnreadablePacket(f"{kind.name} with more than it may have: {data!r}")
    return packet


def _read_publish(version: int, flags: int, body: _Body) -> ReceivedPacket:
    qos = flags >> 1 & 3
    topic = body.text()
    packet_id = body.number(2) if qos else 0
    if qos == 3 or (qos and not packet_id) or (flags & 8 and not qos) or not topic or {"+", "#"} & set(topic):
        raise UnreadablePacket(f"PUBLISH with flags {flags} and identifier {packet_id} to {topic!r}")
    properties = body.properties() if version == 5 else ()
    return ReceivedPacket(
        PacketKind.PUBLISH,
        packet_id,
        is_dup=bool(flags & 8),
        qos=qos,
        is_retained=bool(flags & 1),
        topic=topic,
        payload=body.rest(),
        properties=properties,
    )
