"""The requests of a client that wait for an answer, in order, to be sent again to another leader (4.4)."""

from typing import Final

from gateway_mqtt.codec.encoding import PUBCOMP, PUBREL
from gateway_mqtt.codec.packet_types import PacketType

_DUP: Final = 0x08

#: A PUBLISH of QoS 2, without DUP and RETAIN.
_PUBLISH_2: Final = 0x34

#: What ends each kind of request, or the first part of it: PUBREC ends the PUBLISH of QoS 2.
_ENDED_BY: Final = {
    PacketType.PUBACK: PacketType.PUBLISH,
    PacketType.PUBREC: PacketType.PUBLISH,
    PacketType.PUBCOMP: PacketType.PUBREL,
    PacketType.SUBACK: PacketType.SUBSCRIBE,
    PacketType.UNSUBACK: PacketType.UNSUBSCRIBE,
}


class RelayedRequests:
    """Owns the packets by packet identifier: PUBLISH of QoS 1 and 2, PUBREL, SUBSCRIBE and UNSUBSCRIBE.

    ``size`` is the number of their bytes. ``are_whole`` is false while one of them was too large to be kept.
    """

    def __init__(self) -> None:
        self.size = 0
        #: The identifiers of QoS 2 whose message a leader has, and whose PUBREL the client has not sent.
        self._received: set[int] = set()
        #: Those of them of which the present leader knows nothing.
        self._unknown: set[int] = set()
        self._packet_by_id: dict[int, bytes] = {}
        self._large: set[int] = set()

    @property
    def are_whole(self) -> bool:
        """See the class."""
        return not self._large

    @property
    def may_repeat(self) -> bool:
        """Whether a leader without the session would take a message of QoS 2 twice."""
        return any(each[0] & 0xF6 == _PUBLISH_2 for each in self._packet_by_id.values())

    def sent(self, packet_id: int, packet: bytes, *, is_whole: bool = True) -> None:
        """Keep a request."""
        self._forget(packet_id)
        if is_whole:
            self._packet_by_id[packet_id] = packet
            self.size += len(packet)
        else:
            self._large.add(packet_id)

    def released(self, packet_id: int) -> bytes:
        """Keep a PUBREL; return the answer if the leader knows nothing of it."""
        number = packet_id.to_bytes(2, "big")
        self._received.discard(packet_id)
        if packet_id in self._unknown:
            self._unknown.remove(packet_id)
            return PUBCOMP + number
        self.sent(packet_id, PUBREL + number)
        return b""

    def session_lost(self) -> bytes:
        """Return the PUBCOMP for each PUBREL: the messages were received, and the next leader does not know of them."""
        waiting = [packet_id for packet_id, packet in self._packet_by_id.items() if packet[:2] == PUBREL]
        for packet_id in waiting:
            self._forget(packet_id)
        self._unknown |= self._received
        return b"".join(PUBCOMP + packet_id.to_bytes(2, "big") for packet_id in waiting)

    def answered(self, kind: int, packet_id: int, *, is_error: bool = False) -> None:
        """Forget what is answered; a message of QoS 2 that was received is to be released by the client."""
        kept = self._packet_by_id.get(packet_id)
        if kept is None and packet_id not in self._large:
            return
        if kept is not None and kept[0] >> 4 != _ENDED_BY.get(PacketType(kind)):
            return
        self._forget(packet_id)
        if kind == PacketType.PUBREC and not is_error:
            self._received.add(packet_id)

    def again(self) -> bytes:
        """Return all of them for another leader."""
        return b"".join(map(_repeated, self._packet_by_id.values()))

    def _forget(self, packet_id: int) -> None:
        self.size -= len(self._packet_by_id.pop(packet_id, b""))
        self._large.discard(packet_id)


def _repeated(packet: bytes) -> bytes:
    """Return a packet as it is sent again: PUBLISH with DUP (MQTT-3.3.1-1)."""
    if packet[0] >> 4 != PacketType.PUBLISH:
        return packet
    return bytes((packet[0] | _DUP,)) + packet[1:]
