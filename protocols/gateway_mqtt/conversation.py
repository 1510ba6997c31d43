"""The parts of an open connection: the session, and the objects that serve it."""

from collections.abc import Iterator
from typing import Final

from gateway.kernel.broker.connections import PeerLoad
from gateway.kernel.sessions.session import Session
from gateway_mqtt.codec.errors import protocol_error
from gateway_mqtt.codec.packet_types import PacketType
from gateway_mqtt.handshake.will import Will
from gateway_mqtt.meter import ClientCounters, MeterCount
from gateway_mqtt.scope import Scope
from gateway_mqtt.traffic.delivering import Delivering
from gateway_mqtt.traffic.delivery_writer import DeliveryWriter
from gateway_mqtt.traffic.inflight import Inflight
from gateway_mqtt.traffic.publishing import Publishing
from gateway_mqtt.traffic.retained_feed import RetainedFeed
from gateway_mqtt.traffic.subscribing import Subscribing

#: The first bytes of acknowledgements, their flags included (Table 2-2).
_PUBACK: Final = PacketType.PUBACK << 4
_PUBREC: Final = PacketType.PUBREC << 4
_PUBREL: Final = PacketType.PUBREL << 4 | 2
_PUBCOMP: Final = PacketType.PUBCOMP << 4


class Conversation:
    """Owns the parts of one open connection and closes them in order.

    ``max_packet_size`` and ``alias_maximum`` are the client's.
    """

    __slots__ = (
        "_is_over",
        "delivering",
        "feed",
        "inflight",
        "publishing",
        "scope",
        "subscribing",
        "will",
    )

    def __init__(
        self, scope: Scope, will: Will | None, receive_maximum: int, max_packet_size: int, alias_maximum: int
    ) -> None:
        counters = ClientCounters()
        self.scope = scope
        self.will = will
        self.inflight = Inflight(scope, receive_maximum, counters)
        self.publishing = Publishing(scope, counters)
        self.feed = RetainedFeed(scope)
        writer = DeliveryWriter(scope, counters, max_packet_size, alias_maximum)
        self.delivering = Delivering(scope, self.inflight, writer, self.feed)
        self.subscribing = Subscribing(scope, self.delivering, self.feed)
        self._is_over = False

    def acknowledge(self, first: int, packet_id: int) -> bool:
        """Handle an acknowledgement with this first byte; return false if it is not the first byte of one.

        These are comparisons and not a table: compiled code calls the methods of a table as Python does, see
        docs/adr/0020.
        """
        if first == _PUBACK:
            self.inflight.accept(packet_id)
        elif first == _PUBREC:
            self.inflight.received(packet_id)
        elif first == _PUBREL:
            self.publishing.released(packet_id)
        elif first == _PUBCOMP:
            self.inflight.completed(packet_id)
        else:
            return False
        return True

    @property
    def session(self) -> Session:
        """The client's session."""
        return self.scope.session

    def disconnect(self, expiry_s: int | None, keeps_will: bool) -> None:
        """Handle a DISCONNECT: it may change the session's expiry, but not from 0 to more (3.14.2.2.2).

        :raises MqttError: if the client tries that.
        """
        if expiry_s is not None:
            if expiry_s and not self.session.expiry_s:
                raise protocol_error("Session Expiry Interval was 0 in CONNECT, so DISCONNECT cannot change it")
            self.session.expiry_s = min(expiry_s, self.scope.settings.max_session_expiry_s)
        if not keeps_will:
            self.will = None

    def close(self) -> None:
        """Publish the will, requeue deliveries, and suspend or end the session. Safe to call twice."""
        if self._is_over:
            return
        self._is_over = True
        returning: Iterator[None] = iter(())
        try:
            self.drain()
            self.publishing.close()
            returning = self.delivering.close()
            self.feed.close()
            if self.will is not None:
                self.will.leave(self.scope)
        finally:  # a session that stays open after a failure could never be resumed
            self.scope.vhost.sessions.close(self.session, returning)

    def drain(self) -> None:
        """Add what was counted since the last call to the totals of the virtual host."""
        scope = self.scope
        self.inflight.counters.drain(scope.origin.protocol, scope.vhost.traffic)
        self.publishing.drain()

    def load(self) -> PeerLoad:
        """Add what was counted to the totals of the virtual host; return what the connection holds."""
        self.drain()
        publishers = int(self.inflight.counters.publish > 0)
        return PeerLoad(self.scope.origin.protocol, publishers, len(self.delivering.consumers))

    def count(self, tally: MeterCount) -> None:
        """Add the traffic of both directions to ``tally``."""
        counters = self.inflight.counters
        tally.packets_sent += counters.delivered
        tally.publishes_received += counters.publish
        tally.publishes_sent += counters.delivered
        tally.payload_received += counters.payload_received
        tally.payload_sent += counters.payload_sent


def first_byte(packet_type: PacketType) -> int:
    """Return the first byte of an acknowledgement."""
    return _PUBREL if packet_type is PacketType.PUBREL else packet_type << 4
