"""The parts of an open connection: the session, and the objects that serve it."""

from typing import Final

from gateway.kernel.sessions.session import Session
from gateway_mqtt.codec.errors import protocol_error
from gateway_mqtt.handshake.will import Will
from gateway_mqtt.meter import MeterCount
from gateway_mqtt.scope import Scope
from gateway_mqtt.traffic.delivering import Delivering
from gateway_mqtt.traffic.inflight import Inflight
from gateway_mqtt.traffic.publishing import Publishing
from gateway_mqtt.traffic.retained_feed import RetainedFeed
from gateway_mqtt.traffic.subscribing import Subscribing

#: The first bytes of acknowledgements, their flags included (Table 2-2).
_PUBREC: Final = 0x50
_PUBREL: Final = 0x62
_PUBCOMP: Final = 0x70


class Conversation:
    """Owns the parts of one open connection and closes them in order."""

    __slots__ = ("_is_over", "delivering", "feed", "inflight", "publishing", "scope", "subscribing", "will")

    def __init__(
        self, scope: Scope, will: Will | None, inflight: Inflight, delivering: Delivering, publishing: Publishing
    ) -> None:
        self.scope = scope
        self.will = will
        self.inflight = inflight
        self.delivering = delivering
        self.publishing = publishing
        self.feed = delivering.feed = RetainedFeed(scope)
        self.subscribing = Subscribing(scope, delivering, self.feed)
        self._is_over = False

    @property
    def session(self) -> Session:
        """The client's session."""
        return self.scope.session

    def acknowledge(self, first: int, packet_id: int) -> bool:
        """Handle an acknowledgement that is only a packet identifier; return whether ``first`` is the byte of one.

        PUBACK is handled elsewhere.
        """
        if first == _PUBREC:
            self.inflight.received(packet_id)
        elif first == _PUBREL:
            self.publishing.released(packet_id)
        elif first == _PUBCOMP:
            self.inflight.completed(packet_id)
        else:
            return False
        return True

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
        """Requeue deliveries, publish the will, and suspend or end the session. Safe to call twice."""
        if self._is_over:
            return
        self._is_over = True
        try:
            self.publishing.close()
            self.delivering.close()
            self.feed.close()
            if self.will is not None:
                self.will.leave(self.scope)
        finally:  # a session that stays open after a failure could never be resumed
            self.scope.vhost.sessions.close(self.session)

    def count(self, tally: MeterCount) -> None:
        """Add the traffic of both directions to ``tally``."""
        counters = self.inflight.counters
        tally.packets_sent += counters.deliver
        tally.publishes_received += counters.publish
        tally.publishes_sent += counters.deliver
        tally.payload_received += counters.payload_received
        tally.payload_sent += counters.payload_sent
