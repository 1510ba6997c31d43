"""The packet identifiers of one session: which deliveries are under way, in both directions, across connections.

An exactly-once delivery takes two rounds (MQTT 5.0, 4.3.3). Where it stands is recorded for a session that survives,
so that a kill in any state neither loses nor doubles the message. Identifiers of at-least-once deliveries are
remembered from one connection to the next, and not longer: seeing such a message twice is allowed.
"""

from collections.abc import Callable, Mapping
from typing import Final

from gateway.kernel.journal.changes import Change, Put, Removed
from gateway.kernel.journal.records import HandshakeRecord

#: Packet identifiers are 1 to this (MQTT-2.2.1-3).
LAST_ID: Final = 65_535


class Handshakes:
    """What one session knows of unfinished deliveries.

    ``received`` are incoming identifiers that wait for their release, ``releasing`` outgoing ones whose message the
    subscriber has. ``remembered`` says under which identifier and QoS the message at a position was sent to a
    connection that is gone. Without ``record`` nothing survives a restart. ``_has_others`` says that identifiers may be
    in use besides those that are in flight.
    """

    __slots__ = ("_client_id", "_has_others", "_last_id", "_record", "_vhost", "received", "releasing", "remembered")

    def __init__(self, vhost: str, client_id: str, record: Callable[[Change], None] | None) -> None:
        self._vhost = vhost
        self._client_id = client_id
        self._record = record
        self._last_id = 0
        self._has_others = False
        self.received: set[int] = set()
        self.releasing: dict[int, None] = {}
        self.remembered: dict[int, tuple[int, int]] = {}

    @property
    def is_durable(self) -> bool:
        """Whether they survive a restart."""
        return self._record is not None

    # Publishes of the client

    def receive(self, packet_id: int) -> bool:
        """Note a publish; return whether it is the first under this identifier, and so is to be published on."""
        if packet_id in self.received:
            return False
        self.received.add(packet_id)
        self._put(True, packet_id)
        return True

    def release(self, packet_id: int) -> bool:
        """Forget a publish: its publisher will not send it again. Return whether it was known."""
        if packet_id not in self.received:
            return False
        self.received.remove(packet_id)
        self._remove(True, packet_id)
        return True

    # Deliveries to the client

    def next_id(self, in_flight: Mapping[int, object]) -> int:
        """Return an identifier that is not in use; there are always more than a client may hold at once."""
        packet_id = self._last_id % LAST_ID + 1
        if self._has_others or packet_id in in_flight:
            self._has_others = bool(self.releasing or self.remembered)
            while packet_id in in_flight or packet_id in self.releasing or self._is_remembered(packet_id):
                packet_id = packet_id % LAST_ID + 1
        self._last_id = packet_id
        return packet_id

    def begin(self, packet_id: int, position: int) -> None:
        """Record under which identifier an exactly-once delivery is sent, before it is."""
        self._put(False, packet_id, position)

    def proceed(self, packet_id: int) -> None:
        """The subscriber has the message: what is left is to release the identifier."""
        self._has_others = True
        self.releasing[packet_id] = None
        self._put(False, packet_id)

    def conclude(self, packet_id: int) -> bool:
        """Forget an exactly-once delivery: both sides are done. Return whether it was waiting for that."""
        if packet_id not in self.releasing:
            return False
        del self.releasing[packet_id]
        self._remove(False, packet_id)
        return True

    def abort(self, packet_id: int) -> None:
        """Forget an exactly-once delivery that the subscriber refused."""
        self._remove(False, packet_id)

    # From one connection to the next

    def remember(self, position: int, packet_id: int, qos: int) -> None:
        """Keep the identifier of a delivery that the connection's end left open (MQTT-4.4.0-1)."""
        self._has_others = True
        self.remembered[position] = (packet_id, qos)

    def recall(self, position: int) -> tuple[int, int] | None:
        """Return and forget the identifier and QoS under which the message at a position was sent before."""
        return self.remembered.pop(position, None)

    def give_up_before(self, position: float) -> list[int]:
        """Give up deliveries of earlier messages: a later one is sent, so those have left their queue meanwhile.

        Return the identifiers to release: their subscriber may have the message and wait for that, and would take
        another one under the same identifier for it.
        """
        packet_ids = []
        for earlier in [earlier for earlier in self.remembered if earlier < position]:
            packet_id, qos = self.remembered.pop(earlier)
            if qos == 2:
                self.proceed(packet_id)
                packet_ids.append(packet_id)
        return packet_ids

    # Recovery and end

    def install(self, record: HandshakeRecord) -> None:
        """Take back what was recorded."""
        self._has_others = True
        if record.is_incoming:
            self.received.add(record.packet_id)
        elif record.position:
            self.remembered[record.position] = (record.packet_id, 2)
        else:
            self.releasing[record.packet_id] = None

    def forget_all(self) -> None:
        """The session ends."""
        for packet_id in self.received:
            self._remove(True, packet_id)
        exactly_once = [packet_id for packet_id, qos in self.remembered.values() if qos == 2]
        for packet_id in (*self.releasing, *exactly_once):
            self._remove(False, packet_id)

    def _is_remembered(self, packet_id: int) -> bool:
        return bool(self.remembered) and any(packet_id == known for known, _ in self.remembered.values())

    def _put(self, is_incoming: bool, packet_id: int, position: int = 0) -> None:
        if self._record is not None:
            self._record(Put(HandshakeRecord(self._vhost, self._client_id, is_incoming, packet_id, position)))

    def _remove(self, is_incoming: bool, packet_id: int) -> None:
        if self._record is not None:
            key = (self._vhost, self._client_id, is_incoming, packet_id)
            self._record(Removed(HandshakeRecord.kind, key))
