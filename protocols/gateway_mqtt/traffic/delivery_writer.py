"""Writing of deliveries to one client: PUBLISH packets, topic aliases, and the count of deliveries."""

from typing import Final

from gateway.kernel.messages.message import Message
from gateway.kernel.messages.queued_message import QueuedMessage
from gateway.kernel.queueing.queue_identity import QueueIdentity
from gateway.kernel.sessions.subscriptions import Terms
from gateway_mqtt.meter import ClientCounters
from gateway_mqtt.scope import Scope
from gateway_mqtt.traffic.aliases import OutgoingAliases
from gateway_mqtt.traffic.encoder import Encoder, NumberedPacket
from gateway_mqtt.translation.views import delivery_view_of

#: An empty topic, sent with a known alias (3.3.2.3.4).
_NO_TOPIC: Final = b"\0\0"

#: Packets up to this size, in bytes, are copied into one piece. Larger ones are written in parts, so that subscribers
#: share the body and do not each hold a copy.
_SMALL: Final = 1024


class DeliveryWriter:
    """Writes deliveries to the outbox of one connection.

    ``plain_size`` is the largest packet that all subscribers may share, in bytes: the client's Maximum Packet Size, or
    0 if the client uses topic aliases.
    """

    __slots__ = (
        "_aliases",
        "_counters",
        "_journal",
        "_mapping",
        "_max_packet_size",
        "_vhost",
        "encoder",
        "origin",
        "outbox",
        "plain_size",
    )

    def __init__(self, scope: Scope, counters: ClientCounters, max_packet_size: int, alias_maximum: int) -> None:
        self.encoder: Encoder = scope.settings.encoders.of(scope.version, scope.mapping)
        self._mapping = scope.mapping
        self.origin = scope.origin
        self.plain_size = 0 if alias_maximum else max_packet_size
        self._counters = counters
        self._vhost = scope.vhost
        self._journal = scope.journal
        self.outbox = scope.outbox
        self._max_packet_size = max_packet_size
        self._aliases = OutgoingAliases(alias_maximum) if alias_maximum else None

    def send_special(
        self,
        queue: QueueIdentity,
        message: Message,
        terms: Terms | None,
        redelivered: bool,
        entry: QueuedMessage | None,
        *,
        qos: int,
        packet_id: int = 0,
        is_resent: bool = False,
    ) -> bool:
        """Send a packet for this client only; return whether it fits the Maximum Packet Size (MQTT-3.1.2-24)."""
        view = delivery_view_of(message.header, self._mapping)
        identifiers = () if terms is None else terms.identifiers
        is_retained = view.is_retained and terms is not None and terms.retain_as_published
        if view.is_copy:
            identifiers = (view.identifier,) if view.identifier else ()
            is_retained = True
        topic, alias = self._encoder_topic(message.routing_key)
        packet = self.encoder.special(
            message,
            view,
            qos=qos,
            packet_id=packet_id,
            is_resent=is_resent,
            is_retained=is_retained,
            identifiers=identifiers,
            topic=topic,
            alias=alias,
            now_ms=self._journal.now_ms,
        )
        if len(packet) > self._max_packet_size:
            if self._aliases is not None and alias and topic != _NO_TOPIC:
                self._aliases.forget(message.routing_key)
            return False
        self.outbox.pieces.append(packet)
        self._counters.redeliver += redelivered
        self.record(len(packet), queue, message, redelivered, entry)
        return True

    def _encoder_topic(self, routing_key: str) -> tuple[bytes, int]:
        """Return the encoded topic and its alias; the topic is empty if the client has received the alias."""
        topic = self.encoder.topic(routing_key)
        if self._aliases is None:
            return topic, 0
        alias, is_known = self._aliases.alias(routing_key)
        return _NO_TOPIC if is_known else topic, alias

    def add_numbered(self, packet: NumberedPacket, packet_id: int) -> None:
        """Add a packet with this identifier to the outbox."""
        number = packet_id.to_bytes(2, "big")
        if packet.size <= _SMALL:
            self.outbox.pieces.append(packet.head + number + packet.tail)
        else:
            self.outbox.pieces += (packet.head, number, packet.tail)

    def record(
        self, size: int, queue: QueueIdentity, message: Message, redelivered: bool, entry: QueuedMessage | None
    ) -> None:
        """Count a delivery whose packet of ``size`` bytes was added to the outbox, and report it to the tracers."""
        self.outbox.delivered(size)
        counters = self._counters
        if entry is None:
            counters.deliver_no_ack += 1
        else:
            counters.deliver += 1
        counters.payload_sent += len(message.body)
        tracing = self._vhost.tracing
        if tracing is not None:
            tracing.delivered(message, queue, redelivered, self.origin, entry)

    def promise(self) -> None:
        """Delay later packets until everything recorded so far is durable."""
        self.outbox.promise(self._journal.pending_lsn)
