"""What a connection has once it is in its virtual host: a session, and the parts that serve it."""

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
    """Owns the parts of one open connection, and sees to it that they end in order."""

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
        """Take what says nothing but a packet identifier, by its first byte; return whether that is such a packet's.

        A PUBACK does not come this way.
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

    def depart(self, expiry_s: int | None, keeps_will: bool) -> None:
        """The client says goodbye: it may change how long its session waits, though not give it a life (3.14.2.2.2).

        :raises MqttError: when it tries to.
        """
        if expiry_s is not None:
            if expiry_s and not self.session.expiry_s:
                raise protocol_error("a session that was to end with its connection cannot be given an expiry")
            self.session.expiry_s = min(expiry_s, self.scope.settings.max_session_expiry_s)
        if not keeps_will:
            self.will = None

    def close(self) -> None:
        """End: what is under way goes back, the will is published, the session waits or ends. Harmless twice."""
        if self._is_over:
            return
        self._is_over = True
        try:
            self.publishing.close()
            self.delivering.close()
            self.feed.close()
            if self.will is not None:
                self.will.leave(self.scope)
        finally:  # whatever fails above, the session is let go of, or no client could have it again
            self.scope.vhost.sessions.close(self.session)

    def count(self, tally: MeterCount) -> None:
        """Add what went each way."""
        counters = self.inflight.counters
        tally.packets_sent += counters.deliver
        tally.publishes_received += counters.publish
        tally.publishes_sent += counters.deliver
        tally.payload_received += counters.payload_received
        tally.payload_sent += counters.payload_sent
