"""The bytes of one client, put together into packets however they were cut (2.1)."""

from gateway_mqtt.codec.errors import MqttError
from gateway_mqtt.codec.reasons import ReasonCode


class IncomingPackets:
    """Owns what came of a packet that is not whole yet: its ``beginning``.

    At least ``missing`` more bytes are needed before it is worth a look. The pieces are joined once the packet is
    whole, so that a large one is not copied with each read.
    """

    __slots__ = ("_missing", "_pieces")

    def __init__(self, beginning: bytes, missing: int) -> None:
        self._pieces = [beginning]
        self._missing = missing

    def feed(self, data: bytes) -> bytes:
        """Add to what waits; return all of it if it may hold a whole packet by now, and nothing otherwise."""
        self._pieces.append(data)
        self._missing -= len(data)
        return b"" if self._missing > 0 else b"".join(self._pieces)

    @property
    def size(self) -> int:
        """How many bytes wait."""
        return sum(map(len, self._pieces))


def remaining_length(data: bytes, at: int, end: int, limit: int) -> tuple[int, int] | None:
    """Return the remaining length of the packet that begins at ``at`` and where its body does; ``None`` if cut.

    :raises MqttError: when the length is malformed, or the whole packet larger than ``limit`` bytes (MQTT-3.1.2-25).
    """
    length = shift = 0
    for start in range(at + 1, min(at + 5, end)):
        byte = data[start]
        length |= (byte & 0x7F) << shift
        if byte < 0x80:
            if length + start + 1 - at > limit:
                raise MqttError(ReasonCode.PACKET_TOO_LARGE, f"a packet of {length} bytes, allowed are {limit} in all")
            return length, start + 1
        shift += 7
    if end - at >= 5:
        raise MqttError(ReasonCode.MALFORMED_PACKET, "the remaining length takes more than four bytes")  # 1.5.5
    return None
