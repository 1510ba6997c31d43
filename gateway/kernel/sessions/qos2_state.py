"""The packet identifiers of one session: unfinished deliveries in both directions, across connections.

An exactly-once delivery takes two round trips (MQTT 5.0, 4.3.3). Its state is recorded for a durable session, so that a
kill at any point neither loses nor duplicates the message. Identifiers of at-least-once deliveries are only kept until
the next connection: such a message may be delivered twice.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from gateway.kernel.budget import PendingWork
from gateway.kernel.clock import drained
from gateway.kernel.journal.changes import Change, Put, Removed
from gateway.kernel.journal.records.sessions import HandshakeRecord

#: The highest packet identifier; the lowest is 1 (MQTT-2.2.1-3).
LAST_ID: Final = 65_535


#: The identifiers of a session that has none in use: empty, and never written to.
_NO_IDS: Final[dict[int, None]] = {}
_NO_WORK: Final[dict[int, PendingWork]] = {}
_NOTHING_REMEMBERED: Final[dict[int, tuple[int, int]]] = {}


class Qos2State:
    """The unfinished deliveries of one session.

    ``received`` are incoming identifiers that wait for PUBREL, ``releasing`` outgoing ones whose message the subscriber
    has. ``remembered`` maps the position of a message to the identifier and QoS under which a previous connection sent
    it. Without ``record`` nothing survives a restart. ``_has_others`` is set when identifiers besides those in flight
    may be in use. ``publishing`` has the work of received publishes whose messages are offered to very many queues.
    Most sessions use none of the four dictionaries, which take 0.3 KiB when empty, so each is made when it is needed.
    """

    __slots__ = (
        "_client_id",
        "_has_others",
        "_last_id",
        "_record",
        "_vhost",
        "publishing",
        "received",
        "releasing",
        "remembered",
    )

    def __init__(self, vhost: str, client_id: str, record: Callable[[Change], None] | None) -> None:
        self._vhost = vhost
        self._client_id = client_id
        self._record = record
        self._last_id = 0
        self._has_others = False
        self.received = _NO_IDS  # a dictionary: a set takes 0.2 KiB when empty
        self.publishing = _NO_WORK
        self.releasing = _NO_IDS
        self.remembered = _NOTHING_REMEMBERED

    @property
    def is_durable(self) -> bool:
        """Whether the state survives a restart."""
        return self._record is not None

    # Publishes of the client

    def receive(self, packet_id: int) -> bool:
        """Record a publish; return whether it is the first with this identifier and must be published."""
        if packet_id in self.received:
            return False
        self._add_received(packet_id)
        self._put(True, packet_id)
        return True

    def receive_with(self, packet_id: int, work: PendingWork) -> None:
        """Record the first publish with an identifier once its work is done, in the turn that stores its message.

        A record of an earlier turn could survive a crash without the message, which the publisher then sends in vain.
        """
        self._add_received(packet_id)
        if self.publishing is _NO_WORK:
            self.publishing = {}
        self.publishing[packet_id] = work
        work.when_done(lambda _: self._record_late(packet_id))

    def _record_late(self, packet_id: int) -> None:
        if self.publishing.pop(packet_id, None) is not None:
            self._put(True, packet_id)

    def release(self, packet_id: int) -> bool:
        """Forget a publish that its publisher has released; return whether it was known."""
        if packet_id not in self.received:
            return False
        del self.received[packet_id]
        if self.publishing.pop(packet_id, None) is None:  # else nothing is recorded yet
            self._remove(True, packet_id)
        return True

    # Deliveries to the client

    def next_id(self, in_flight: Mapping[int, object]) -> int:
        """Return an unused identifier; there are always more than a client may have in flight."""
        packet_id = self._last_id % LAST_ID + 1
        if self._has_others or packet_id in in_flight:
            self._has_others = bool(self.releasing or self.remembered)
            while packet_id in in_flight or packet_id in self.releasing or self._is_remembered(packet_id):
                packet_id = packet_id % LAST_ID + 1
        self._last_id = packet_id
        return packet_id

    def begin(self, packet_id: int, position: int) -> None:
        """Record the identifier of an exactly-once delivery before it is sent."""
        self._put(False, packet_id, position)

    def proceed(self, packet_id: int) -> None:
        """Record that the subscriber has the message: only the identifier remains to be released."""
        self._add_releasing(packet_id)
        self._put(False, packet_id)

    def conclude(self, packet_id: int) -> bool:
        """Forget a completed exactly-once delivery; return whether it was waiting for its completion."""
        if packet_id not in self.releasing:
            return False
        del self.releasing[packet_id]
        self._remove(False, packet_id)
        return True

    def abort(self, packet_id: int) -> None:
        """Forget an exactly-once delivery that the subscriber rejected."""
        self._remove(False, packet_id)

    # From one connection to the next

    def remember(self, position: int, packet_id: int, qos: int) -> None:
        """Keep the identifier of a delivery that was unfinished when its connection ended (MQTT-4.4.0-1)."""
        self._has_others = True
        if self.remembered is _NOTHING_REMEMBERED:
            self.remembered = {}
        self.remembered[position] = (packet_id, qos)

    def recall(self, position: int) -> tuple[int, int] | None:
        """Return and forget the identifier and QoS with which the message at a position was sent before."""
        return self.remembered.pop(position, None)

    def give_up_before(self, position: float) -> list[int]:
        """Abandon deliveries of earlier messages: a later one is sent, so those have left their queue meanwhile.

        Return the identifiers to release: the subscriber may have the message and wait for PUBREL, and would take
        another message with the same identifier for it.
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
        """Restore a recorded delivery."""
        self._has_others = True
        if record.is_incoming:
            self._add_received(record.packet_id)
        elif record.position:
            self.remember(record.position, record.packet_id, 2)
        else:
            self._add_releasing(record.packet_id)

    def forgetting(self) -> Iterator[None]:
        """Return the steps that delete all records: the session ends."""
        self.publishing.clear()
        for packet_id in drained(list(self.received)):
            self._remove(True, packet_id)
            yield
        exactly_once = [packet_id for packet_id, qos in self.remembered.values() if qos == 2]
        for packet_id in drained([*self.releasing, *exactly_once]):
            self._remove(False, packet_id)
            yield

    @property
    def count(self) -> int:
        """The number of packet identifiers in use."""
        return len(self.received) + len(self.releasing) + len(self.remembered)

    def _add_received(self, packet_id: int) -> None:
        if self.received is _NO_IDS:
            self.received = {}
        self.received[packet_id] = None

    def _add_releasing(self, packet_id: int) -> None:
        self._has_others = True
        if self.releasing is _NO_IDS:
            self.releasing = {}
        self.releasing[packet_id] = None

    def _is_remembered(self, packet_id: int) -> bool:
        return bool(self.remembered) and any(packet_id == known for known, _ in self.remembered.values())

    def _put(self, is_incoming: bool, packet_id: int, position: int = 0) -> None:
        if self._record is not None:
            self._record(Put(HandshakeRecord(self._vhost, self._client_id, is_incoming, packet_id, position)))

    def _remove(self, is_incoming: bool, packet_id: int) -> None:
        if self._record is not None:
            key = (self._vhost, self._client_id, is_incoming, packet_id)
            self._record(Removed(HandshakeRecord.kind, key))
