"""The parts of an open connection: the session, and the objects that serve it."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Final, NamedTuple

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


class ClientLimits(NamedTuple):
    """The limits of a client: unacknowledged deliveries, the size of a packet in bytes, and topic aliases."""

    receive_maximum: int
    max_packet_size: int
    alias_maximum: int


@lru_cache(256)
def client_limits(receive_maximum: int, max_packet_size: int, alias_maximum: int) -> ClientLimits:
    """Return the limits of a client, which many have in common."""
    return ClientLimits(receive_maximum, max_packet_size, alias_maximum)


class Receiving:
    """The parts that serve what a client receives."""

    __slots__ = ("delivering", "feed", "inflight", "subscribing")

    def __init__(self, scope: Scope, counters: ClientCounters, client: ClientLimits) -> None:
        self.inflight = Inflight(scope, client.receive_maximum, counters)
        self.feed = RetainedFeed(scope)
        writer = DeliveryWriter(scope, counters, client.max_packet_size, client.alias_maximum)
        self.delivering = Delivering(scope, self.inflight, writer, self.feed)
        self.subscribing = Subscribing(scope, self.delivering, self.feed)


class Conversation:
    """Owns the parts of one open connection and closes them in order.

    ``publishing`` and ``receiving`` are made when the client first publishes, and first subscribes, and ``_counters``
    with them: most clients of a fleet do one of the two, and an idle connection would keep 0.7 KiB for each.
    """

    __slots__ = ("_client", "_counters", "_is_over", "publishing", "receiving", "scope", "will")

    def __init__(self, scope: Scope, will: Will | None, client: ClientLimits) -> None:
        self._counters: ClientCounters | None = None
        self.scope = scope
        self.will = will
        self.publishing: Publishing | None = None
        self.receiving: Receiving | None = None
        self._client = client
        self._is_over = False
        _ = scope.vhost.traffic.by_protocol[scope.protocol]  # metrics list it from the first connection on

    @property
    def counters(self) -> ClientCounters:
        """The counters of the client's messages; made at the first use."""
        if self._counters is None:
            self._counters = ClientCounters()
        return self._counters

    def begin_publishing(self) -> Publishing:
        """Return the part that serves publishes; make it before the first."""
        if self.publishing is None:
            self.publishing = Publishing(self.scope, self.counters)
        return self.publishing

    def begin_receiving(self) -> Receiving:
        """Return the parts that serve what the client receives; make them before the first subscription."""
        if self.receiving is None:
            self.receiving = Receiving(self.scope, self.counters, self._client)
        return self.receiving

    def acknowledge(self, first: int, packet_id: int) -> bool:
        """Handle an acknowledgement with this first byte; return false if it is not the first byte of one.

        These are comparisons and not a table: compiled code calls the methods of a table as Python does, see
        docs/adr/0020.
        """
        if first == _PUBACK:
            self.begin_receiving().inflight.accept(packet_id)
        elif first == _PUBREC:
            self.begin_receiving().inflight.received(packet_id)
        elif first == _PUBREL:
            self.begin_publishing().released(packet_id)
        elif first == _PUBCOMP:
            self.begin_receiving().inflight.completed(packet_id)
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
            if self.publishing is not None:
                self.publishing.close()
            if self.receiving is not None:
                returning = self.receiving.delivering.close()
                self.receiving.feed.close()
            if self.will is not None:
                self.will.leave(self.scope)
        finally:  # a session that stays open after a failure could never be resumed
            self.scope.vhost.sessions.close(self.session, returning)

    def drain(self) -> None:
        """Add what was counted since the last call to the totals of the virtual host."""
        scope = self.scope
        if self._counters is not None:
            self._counters.drain(scope.protocol, scope.vhost.traffic)
        if self.publishing is not None:
            self.publishing.drain()

    def load(self) -> PeerLoad:
        """Add what was counted to the totals of the virtual host; return what the connection holds."""
        self.drain()
        consumers = 0 if self.receiving is None else len(self.receiving.delivering.consumers)
        has_published = self._counters is not None and self._counters.publish > 0
        return PeerLoad(self.scope.protocol, int(has_published), consumers)

    def count(self, tally: MeterCount) -> None:
        """Add the traffic of both directions to ``tally``."""
        counters = self._counters
        if counters is None:
            return
        tally.packets_sent += counters.delivered
        tally.publishes_received += counters.publish
        tally.publishes_sent += counters.delivered
        tally.payload_received += counters.payload_received
        tally.payload_sent += counters.payload_sent


def first_byte(packet_type: PacketType) -> int:
    """Return the first byte of an acknowledgement."""
    return _PUBREL if packet_type is PacketType.PUBREL else packet_type << 4
