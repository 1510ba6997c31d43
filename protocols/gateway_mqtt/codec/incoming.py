"""Reassembly of packets from the bytes of one client (2.1)."""

from gateway_mqtt.codec.errors import MqttError
from gateway_mqtt.codec.reasons import ReasonCode


class IncomingPackets:
    """Owns the bytes of an incomplete packet; ``beginning`` is its first part.

    At least ``missing`` more bytes must arrive before parsing makes sense. The pieces are joined once the packet is
    complete, so a large one is not copied with each read.
    """

    __slots__ = ("_missing", "_pieces")

    def __init__(self, beginning: bytes, missing: int) -> None:
        self._pieces = [beginning]
        self._missing = missing

    def feed(self, data: bytes) -> bytes:
        """Add bytes; return all of them if they may hold a whole packet, else nothing."""
        self._pieces.append(data)
        self._missing -= len(data)
        return b"" if self._missing > 0 else b"".join(self._pieces)

    @property
    def awaited(self) -> int:
        """The size of the packet, at least."""
        return self.size + max(0, self._missing)

    @property
    def size(self) -> int:
        """The number of buffered bytes."""
        return sum(map(len, self._pieces))


def remaining_length(data: bytes, at: int, end: int, limit: int) -> tuple[int, int] | None:
    """Return the remaining length of the packet at ``at`` and the start of its body; ``None`` if the length is cut.

    :raises MqttError: if the length is malformed, or the whole packet is larger than ``limit`` bytes (MQTT-3.1.2-25).
    """
    length = shift = 0
    for start in range(at + 1, min(at + 5, end)):
        byte = data[start]
        length |= (byte & 0x7F) << shift
        if byte < 0x80:
            if length + start + 1 - at > limit:
                raise MqttError(
                    ReasonCode.PACKET_TOO_LARGE, f"remaining length {length}; the limit for a packet is {limit}"
                )
            return length, start + 1
        shift += 7
    if end - at >= 5:
        raise MqttError(ReasonCode.MALFORMED_PACKET, "the remaining length takes more than four bytes")  # 1.5.5
    return None
