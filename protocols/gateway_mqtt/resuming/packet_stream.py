"""The bytes of one direction of a connection, cut into packets (2.1)."""

from collections.abc import Iterator
from typing import Final

from gateway_mqtt.codec.data_types import LARGEST_PACKET
from gateway_mqtt.codec.errors import MqttError
from gateway_mqtt.codec.incoming import remaining_length

#: The largest packet that is kept until it is whole, in bytes. A larger one passes in pieces.
MOST_HELD_BACK: Final = 2 * 2**20


class PacketStream:
    """Owns the bytes of a packet that is not whole yet.

    ``is_cut``: a part of a large packet has passed, and the rest has not come.
    """

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._missing = 0
        self._left = 0

    @property
    def is_cut(self) -> bool:
        """See the class."""
        return self._left > 0

    def cut(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield packets with the position of their bodies; of a large packet pieces, where it is 0 but in the first.

        :raises MqttError: if a remaining length is malformed; ``take`` returns the bytes from there on.
        """
        if self._left:
            piece, data = data[: self._left], data[self._left :]
            self._left -= len(piece)
            yield 0, piece
        if self._pieces:
            self._pieces.append(data)
            self._missing -= len(data)
            if self._missing > 0:
                return
            data = self.take()
        at, end = 0, len(data)
        while at < end:
            try:
                found = remaining_length(data, at, end, LARGEST_PACKET)
            except MqttError:
                self._pieces = [data[at:]]
                raise
            missing = 1 if found is None else found[1] + found[0] - end
            if missing > 0:
                if found is None or end - at + missing <= MOST_HELD_BACK:
                    self._pieces, self._missing = [data[at:]], missing
                    return
                self._left = missing
            assert found is not None
            length, body = found
            yield body - at, data[at : body + length]
            at = body + length

    def take(self) -> bytes:
        """Return what is kept, and keep nothing more."""
        kept = b"".join(self._pieces)
        self._pieces.clear()
        self._missing = self._left = 0
        return kept
