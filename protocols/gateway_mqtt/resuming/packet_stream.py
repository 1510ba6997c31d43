"""The bytes of one direction of a connection, cut into packets (2.1)."""

from collections.abc import Iterator
from typing import Final

from gateway.net.forwarding.partial_unit import PartialUnit
from gateway_mqtt.codec.data_types import LARGEST_PACKET
from gateway_mqtt.codec.errors import MqttError
from gateway_mqtt.codec.incoming import remaining_length

#: The largest packet that is kept until it is whole, in bytes. A larger one passes in pieces.
MOST_HELD_BACK: Final = 2 * 2**20


class PacketStream:
    """Owns the bytes of a packet that is not whole yet.

    ``is_cut``: a part of a large packet has passed, and the rest has not come. ``limit`` is the largest packet, in
    bytes; it may be changed between two packets.
    """

    def __init__(self, limit: int = LARGEST_PACKET) -> None:
        self.limit = limit
        self._partial = PartialUnit()

    @property
    def is_cut(self) -> bool:
        """See the class."""
        return self._partial.is_cut

    @property
    def kept(self) -> int:
        """The number of bytes that wait for the rest of their packet."""
        return self._partial.size

    def cut(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield packets with the position of their bodies; of a large packet pieces, where it is 0 but in the first.

        :raises MqttError: if a remaining length is malformed or too large; ``take`` returns the bytes from there on.
        """
        if piece := self._partial.piece(data):
            yield 0, piece
        whole = self._partial.add(data[len(piece) :])
        if whole is None:
            return
        at, end = 0, len(whole)
        while at < end:
            try:
                found = remaining_length(whole, at, end, self.limit)
            except MqttError:
                self._partial.keep(whole[at:])
                raise
            missing = 1 if found is None else found[1] + found[0] - end
            if missing > 0:
                if found is None or end - at + missing <= MOST_HELD_BACK:
                    self._partial.keep(whole[at:], missing)
                    return
                self._partial.pass_in_pieces(missing)
            assert found is not None
            length, body = found
            yield body - at, whole[at : body + length]
            at = body + length

    def take(self) -> bytes:
        """Return what is kept, and keep nothing more."""
        return self._partial.take()
