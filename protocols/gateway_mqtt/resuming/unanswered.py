"""The requests of a client that wait for an answer, in order, to be sent again to another leader (4.4)."""

from typing import Final

from gateway_mqtt.codec.encoding import PUBCOMP, PUBREL
from gateway_mqtt.codec.packet_types import PacketType

_DUP: Final = 0x08

#: A PUBLISH of QoS 2, without DUP and RETAIN.
_PUBLISH_2: Final = 0x34
_WITHOUT_FLAGS: Final = 0xF6

#: The requests that each answer ends; PUBREC ends the PUBLISH of QoS 2.
_ENDED_BY: Final = {
    PacketType.PUBACK: PacketType.PUBLISH,
    PacketType.PUBREC: PacketType.PUBLISH,
    PacketType.PUBCOMP: PacketType.PUBREL,
    PacketType.SUBACK: PacketType.SUBSCRIBE,
    PacketType.UNSUBACK: PacketType.UNSUBSCRIBE,
}


class UnansweredPackets:
    """Owns the packets by kind and packet identifier: PUBLISH of QoS 1 and 2, PUBREL, SUBSCRIBE and UNSUBSCRIBE.

    ``size`` is the number of their bytes. ``are_whole`` is false while one of them was too large to be kept.
    """

    def __init__(self) -> None:
        self.size = 0
        self._packets: dict[tuple[int, int], bytes] = {}
        self._large: set[tuple[int, int]] = set()
        #: The identifiers of QoS 2 whose message a leader has, and whose PUBREL the client has not sent.
        self._received: set[int] = set()
        #: Those of them of which the present leader knows nothing.
        self._unknown: set[int] = set()

    @property
    def are_whole(self) -> bool:
        """See the class."""
        return not self._large

    @property
    def have_question(self) -> bool:
        """Whether one of them is no publish: a SUBSCRIBE or UNSUBSCRIBE."""
        return any(kind in (PacketType.SUBSCRIBE, PacketType.UNSUBSCRIBE) for kind, _ in self._packets)

    @property
    def may_repeat(self) -> bool:
        """Whether a leader without the session would take a message of QoS 2 twice."""
        return any(packet[0] & _WITHOUT_FLAGS == _PUBLISH_2 for packet in self._packets.values())

    def sent(self, kind: int, packet_id: int, packet: bytes, *, is_whole: bool = True) -> None:
        """Keep a request."""
        self._forget(kind, packet_id)
        if is_whole:
            self._packets[kind, packet_id] = packet
            self.size += len(packet)
        else:
            self._large.add((kind, packet_id))

    def released(self, packet_id: int) -> bytes:
        """Keep a PUBREL; return the answer if the leader knows nothing of it."""
        number = packet_id.to_bytes(2, "big")
        self._received.discard(packet_id)
        if packet_id in self._unknown:
            self._unknown.remove(packet_id)
            return PUBCOMP + number
        self.sent(PacketType.PUBREL, packet_id, PUBREL + number)
        return b""

    def answered(self, kind: int, packet_id: int, *, is_error: bool = False) -> None:
        """Forget what is answered; a message of QoS 2 that was received is to be released by the client."""
        is_known = self._forget(_ENDED_BY[PacketType(kind)], packet_id)
        if is_known and kind == PacketType.PUBREC and not is_error:
            self._received.add(packet_id)

    def session_lost(self) -> bytes:
        """Return the PUBCOMP for each PUBREL: the messages were received, and the next leader does not know of them."""
        waiting = [packet_id for kind, packet_id in self._packets if kind == PacketType.PUBREL]
        for packet_id in waiting:
            self._forget(PacketType.PUBREL, packet_id)
        self._unknown |= self._received
        return b"".join(PUBCOMP + packet_id.to_bytes(2, "big") for packet_id in waiting)

    def again(self) -> bytes:
        """Return all of them for another leader."""
        return b"".join(map(_repeated, self._packets.values()))

    def _forget(self, kind: int, packet_id: int) -> bool:
        """Forget a request; return whether there was one."""
        packet = self._packets.pop((kind, packet_id), b"")
        self.size -= len(packet)
        is_large = (kind, packet_id) in self._large
        self._large.discard((kind, packet_id))
        return bool(packet) or is_large


def _repeated(packet: bytes) -> bytes:
    """Return a packet as it is sent again: PUBLISH with DUP (MQTT-3.3.1-1)."""
    if packet[0] >> 4 != PacketType.PUBLISH:
        return packet
    return bytes((packet[0] | _DUP,)) + packet[1:]
