"""The acknowledgements that a client owes for deliveries, so that those of a former leader are told from the others."""

from collections import Counter
from typing import Final

from gateway_mqtt.codec.packet_types import PacketType

#: The acknowledgement that each packet of a leader asks for, by its QoS for PUBLISH.
_BY_QOS: Final = (0, PacketType.PUBACK, PacketType.PUBREC)


class OwedAnswers:
    """Owns what is owed, by the kind of the answer and the packet identifier.

    A client answers deliveries in their order (MQTT-4.6.0-2), so the first answer with an identifier is for its first
    delivery. What a former leader would have got is not passed on: the next leader delivers again what was not
    acknowledged, perhaps with other identifiers.
    """

    def __init__(self) -> None:
        self._owed: set[tuple[int, int]] = set()
        self._stale: Counter[tuple[int, int]] = Counter()
        self._unfinished: set[int] = set()

    @property
    def has_exactly_once(self) -> bool:
        """Whether a delivery of QoS 2 is not completed."""
        return bool(self._unfinished)

    def delivered(self, qos: int, packet_id: int) -> None:
        """Note a PUBLISH of QoS 1 or 2 of the leader."""
        self._owed.add((_BY_QOS[qos], packet_id))
        if qos == 2:
            self._unfinished.add(packet_id)

    def released(self, packet_id: int) -> None:
        """Note a PUBREL of the leader."""
        self._owed.add((PacketType.PUBCOMP, packet_id))

    def is_for_leader(self, kind: int, packet_id: int, *, is_error: bool) -> bool:
        """Note an answer of the client; return whether the present leader is to get it."""
        key = kind, packet_id
        if kind == PacketType.PUBCOMP or (kind == PacketType.PUBREC and is_error):
            self._unfinished.discard(packet_id)
        if self._stale[key] > 0:
            self._stale[key] -= 1
            if not self._stale[key]:
                del self._stale[key]
            return False
        del self._stale[key]
        self._owed.discard(key)
        return True

    def leader_lost(self) -> None:
        """From now on, what is owed is for a former leader."""
        self._stale.update(self._owed)
        self._owed.clear()
