"""Handling of a client's PUBLISH packets and their acknowledgements (MQTT 5.0, 3.3 and 4.3)."""

from functools import partial
from typing import Final

from gateway.kernel.caches import remember
from gateway.kernel.interception.interceptor import Refusal
from gateway.kernel.journal.confirms import Confirms
from gateway.kernel.messages.message import Message
from gateway.kernel.routing.exchange import Exchange
from gateway.kernel.vhosts.verdict import REFUSED, TAKEN, UNROUTED, Verdict
from gateway_mqtt.codec.data_types import text_of
from gateway_mqtt.codec.encoding import PUBACK, PUBCOMP, PUBREC, ack
from gateway_mqtt.codec.errors import MqttError, protocol_error, shown
from gateway_mqtt.codec.packet_types import PacketType
from gateway_mqtt.codec.publish import (
    NO_PROPERTIES,
    PublishProperties,
    decode_publish,
    scan_publish_properties,
    without_alias,
)
from gateway_mqtt.codec.reasons import ReasonCode
from gateway_mqtt.meter import ClientCounters
from gateway_mqtt.scope import Scope
from gateway_mqtt.traffic.aliases import NO_ALIASES, IncomingAliases
from gateway_mqtt.traffic.target import REFUSAL_REASONS, Target, TopicRefusal
from gateway_mqtt.translation.header import MqttHeader, mqtt_header
from gateway_mqtt.translation.topics import check_topic

#: The limit of cached targets and headers per connection; a cache is cleared when it is full.
_MAX_CACHED: Final = 1024

#: Longer properties, in bytes, are not cached, because they seldom repeat.
_LONGEST_CACHED: Final = 256

#: Longer topics, in bytes, are not cached: a thousand of 64 KB would cost more memory than they save time.
_LONGEST_CACHED_TOPIC: Final = 1024

#: The cost of a topic that is not cached, in units of the time budget.
_TOPIC_WORK: Final = 16

#: The number of property bytes that cost one unit of the time budget, as a power of two.
_BYTES_A_UNIT: Final = 3

_RETAIN: Final = 0x01

#: The headers without properties of a client that has not published, by flags; never written to.
_NO_HEADERS: Final[list[MqttHeader | None]] = [None] * 8


class PendingAcknowledgement:
    """An acknowledgement that is not sent yet. ``text`` is the reason string of a refusal."""

    __slots__ = ("packet_id", "packet_type", "reason", "text")

    def __init__(self, packet_type: PacketType, packet_id: int, reason: ReasonCode, text: str) -> None:
        self.packet_type = packet_type
        self.packet_id = packet_id
        self.reason = reason
        self.text = text


class Publishing:
    """Publishes for one client. Owns the caches of topics and properties, and the pending acknowledgements.

    PUBACK and PUBREC are sent in the order of the publishes (MQTT-4.6.0-2), each once its message is safe.
    """

    def __init__(self, scope: Scope, counters: ClientCounters) -> None:
        self._scope = scope
        self._version = scope.version
        self._origin = scope.origin
        self._exchange_name = scope.exchange_name
        self._vhost = scope.vhost
        self._traffic = scope.vhost.traffic.by_protocol[scope.protocol]
        self._counters = counters
        self._qos2_state = scope.session.qos2_state
        self._targets: dict[bytes, Target] = {}
        self._last_topic = b""
        self._last_target: Target | None = None
        self._headers: dict[tuple[int, bytes], tuple[MqttHeader, PublishProperties]] = {}
        self._bare = _NO_HEADERS
        alias_maximum = scope.settings.topic_alias_max if scope.version == 5 else 0
        self._aliases = IncomingAliases(alias_maximum) if alias_maximum else NO_ALIASES
        self._confirms = Confirms(scope.journal, self._answer)
        self._answers: list[PendingAcknowledgement] = []
        self._answered = 0
        self._pubacks = 0  # how many of the answers are those of QoS 1
        self._receive_maximum = scope.settings.receive_maximum

    def publish(self, first: int, data: bytes, start: int, end: int) -> None:
        """Publish one packet: its first byte, and its body from ``start`` to ``end``."""
        topic, packet_id, properties_at, payload_at = decode_publish(self._version, first & 0x0F, data, start, end)
        if properties_at == payload_at:
            properties = NO_PROPERTIES
            header = self._bare[first & 0x07] or self._bare_header(first & 0x07)
        else:
            key = (first & 0x07, data[properties_at:payload_at])
            known = self._headers.get(key)
            header, properties = known if known is not None else self._header(*key)
            if properties.topic_alias:
                topic = self._aliases.resolve(properties.topic_alias, topic)
        target = self._last_target if topic == self._last_topic else self._targets.get(topic)
        if target is None or target.version != self._vhost.version:
            target = self._target(topic)
        self._last_topic, self._last_target = topic, target
        body = data[payload_at:end]
        if not target.is_direct:
            if target.refusal is not None:
                self._refuse(first >> 1 & 3, packet_id, target.refusal)
            else:
                message = Message(self._exchange_name, target.routing_key, header, body)
                self._publish_intercepted(first, packet_id, target.exchange, message, properties)
            return
        if properties.payload_format and not _is_utf8(body):
            self._decline(first >> 1 & 3, packet_id, ReasonCode.PAYLOAD_FORMAT_INVALID, "the payload is not UTF-8")
            return
        counters = self._counters
        counters.publish += 1
        counters.payload_received += end - payload_at
        message = Message(self._exchange_name, target.routing_key, header, body)
        if packet_id:
            self._publish_acknowledged(first, packet_id, target.exchange, message)
        else:
            self._vhost.publish(target.exchange, message, self._origin)
            if first & _RETAIN:
                self._vhost.retained.keep(message)

    def _publish_acknowledged(self, first: int, packet_id: int, exchange: Exchange, message: Message) -> None:
        is_exactly_once = first & 0x04
        if is_exactly_once and packet_id in self._qos2_state.received:
            # a resent PUBLISH: its message is published already and must not be published twice (MQTT-4.3.3-10)
            work = self._qos2_state.publishing.get(packet_id)
            if work is not None:  # it is still offered to very many queues: this PUBREC waits for that as well
                self._scope.journal.budget.leave_pending(work)
            self._await(PacketType.PUBREC, packet_id, TAKEN, self._qos2_state.is_durable)
            return
        if len(self._answers) + len(self._qos2_state.received) >= self._receive_maximum:
            self._require_room()
        verdict = self._vhost.publish(exchange, message, self._origin)
        is_stored = message.id != 0
        if first & _RETAIN:
            self._vhost.retained.keep(message)
            is_stored = True
        if is_exactly_once:
            is_stored = is_stored or self._qos2_state.is_durable
            if verdict is not REFUSED:
                self._receive(packet_id, message)
        if verdict is TAKEN and not is_stored and self._is_safe_now:
            self._traffic.confirmed_at_once += 1
            head = PUBREC if is_exactly_once else PUBACK
            self._scope.outbox.write(head + packet_id.to_bytes(2, "big"))
        else:
            self._await(PacketType.PUBREC if is_exactly_once else PacketType.PUBACK, packet_id, verdict, is_stored)

    def _receive(self, packet_id: int, message: Message) -> None:
        """Record the identifier of a QoS 2 publish, in the step of the store that has its message."""
        work = self._vhost.wide_publishing.work_of(message)
        if work is not None:
            self._qos2_state.receive_with(packet_id, work)
        else:
            self._qos2_state.receive(packet_id)

    def _publish_intercepted(
        self, first: int, packet_id: int, exchange: Exchange, message: Message, properties: PublishProperties
    ) -> None:
        """Publish a message as the interceptors return it; one that they divert to another exchange is not retained.

        A refused one is declined with the reason if possible: with QoS 1 and 2 of MQTT 5. Else the connection ends. A
        resent PUBLISH of QoS 2 passed the interceptors when it came first.
        """
        if properties.payload_format and not _is_utf8(message.body):
            self._decline(first >> 1 & 3, packet_id, ReasonCode.PAYLOAD_FORMAT_INVALID, "the payload is not UTF-8")
            return
        self._counters.publish += 1
        self._counters.payload_received += len(message.body)
        chain = self._vhost.interception.publishing_to(message.exchange, message.routing_key)
        is_repeated = first & 0x04 and packet_id in self._qos2_state.received
        if chain is not None and not is_repeated:
            published = chain.intercept(message, self._origin)
            if isinstance(published, Refusal):
                self._refuse(
                    first >> 1 & 3, packet_id, TopicRefusal(REFUSAL_REASONS[published.cause], published.reason)
                )
                return
            if published.exchange != message.exchange:
                exchange = self._vhost.exchange(published.exchange)
                first &= ~_RETAIN
            message = published
        if packet_id:
            self._publish_acknowledged(first, packet_id, exchange, message)
        else:
            self._vhost.publish(exchange, message, self._origin)
            if first & _RETAIN:
                self._vhost.retained.keep(message)

    def _require_room(self) -> None:
        """Enforce Receive Maximum (MQTT-3.3.4-7). :raises MqttError: if that many publishes are unfinished.

        Publishes of QoS 2 count until PUBREL, even if their PUBREC is not sent yet.
        """
        if self._pubacks + len(self._qos2_state.received) >= self._receive_maximum:
            raise MqttError(
                ReasonCode.RECEIVE_MAXIMUM_EXCEEDED, f"more than {self._receive_maximum} unacknowledged publishes"
            )

    @property
    def _is_safe_now(self) -> bool:
        """Whether a message that is not stored may be acknowledged at once: no earlier one waits for the disk.

        Its dead letter may be stored; then the acknowledgement waits for that, as it does for offers in later turns.
        """
        journal = self._scope.journal
        return (
            not self._answers
            and journal.indirect_lsn != journal.lsn
            and journal.budget.pending is None
            and not journal.has_failed
        )

    def released(self, packet_id: int) -> None:
        """Handle a PUBREL: forget the identifier durably, then send PUBCOMP (MQTT-4.3.3-11).

        An earlier PUBCOMP would let the client reuse an identifier that this server still knows after a crash. The same
        holds for an identifier that an earlier connection has just released.
        """
        is_known = self._qos2_state.release(packet_id)
        if self._qos2_state.is_durable:
            self._scope.outbox.promise(self._scope.journal.pending_lsn)
        if is_known:
            self._scope.outbox.write(PUBCOMP + packet_id.to_bytes(2, "big"))
        else:
            reason = ReasonCode.PACKET_IDENTIFIER_NOT_FOUND
            write = partial(ack, PacketType.PUBCOMP, self._scope.version, packet_id, reason)
            self._scope.outbox.write(
                self._scope.host.with_reason_string(f"packet identifier {packet_id} is not in use", write)
            )

    # Acknowledgements

    def fail(self) -> None:
        """Refuse every publish that waits for its acknowledgement, because the store failed."""
        self._confirms.fail()

    def drain(self) -> None:
        """Add the publishes since the last call that expect an acknowledgement to the totals of the virtual host."""
        self._traffic.expecting_confirms += self._confirms.drain()

    def close(self) -> None:
        """Drop all pending acknowledgements."""
        self._confirms.abandon()
        self._answers.clear()
        self._pubacks = 0

    def _await(
        self,
        packet_type: PacketType,
        packet_id: int,
        verdict: Verdict,
        is_stored: bool,
        reason: ReasonCode | None = None,
        text: str = "",
    ) -> None:
        if reason is None:
            reason = ReasonCode.NO_MATCHING_SUBSCRIBERS if verdict is UNROUTED else ReasonCode.SUCCESS
        self._answers.append(PendingAcknowledgement(packet_type, packet_id, reason, text))
        if packet_type is PacketType.PUBACK:
            self._pubacks += 1
        self._confirms.published(verdict is not REFUSED, is_stored)

    def _answer(self, number: int, is_multiple: bool, is_accepted: bool) -> None:
        """Write the acknowledgements up to the ``number``-th publish; refusals come one by one."""
        version = self._scope.version
        count = number - self._answered if is_multiple else 1
        answers = self._answers[:count]
        del self._answers[:count]
        packets = []
        for answer in answers:
            if answer.packet_type is PacketType.PUBACK:
                self._pubacks -= 1
            if not is_accepted:
                if answer.packet_type is PacketType.PUBREC and not self._scope.journal.has_failed:
                    self._qos2_state.release(answer.packet_id)  # known if it was refused in a later turn
                if version < 5:
                    continue  # 3.x has no negative acknowledgement; the client may resend
                answer.reason, answer.text = ReasonCode.QUOTA_EXCEEDED, self._why_refused
            if answer.text:
                write = partial(ack, answer.packet_type, version, answer.packet_id, answer.reason)
                packets.append(self._scope.host.with_reason_string(answer.text, write))
            else:
                packets.append(ack(answer.packet_type, version, answer.packet_id, answer.reason))
        self._answered = number
        if packets:
            self._traffic.confirmed += count if is_accepted else 0
            self._scope.outbox.write_all(packets)

    @property
    def _why_refused(self) -> str:
        return "the store failed" if self._scope.journal.has_failed else "a queue does not take the message"

    def _refuse(self, qos: int, packet_id: int, refusal: TopicRefusal) -> None:
        """Decline a publish to a topic that is forbidden or invalid.

        In 5.0, QoS 1 and 2 get a negative acknowledgement. In other cases the connection ends, as in RabbitMQ. With
        ``disconnect_on_unauthorized`` off, a forbidden publish is dropped instead; 3.x then acknowledges it as usual
        (3.1.1: MQTT-3.3.5-2).
        """
        has_answer = qos and self._version == 5
        drops = refusal.reason is ReasonCode.NOT_AUTHORIZED and not self._scope.settings.disconnect_on_unauthorized
        if not has_answer and not drops:
            raise MqttError(*refusal)
        if qos:
            self._decline(qos, packet_id, *refusal)

    def _decline(self, qos: int, packet_id: int, reason: ReasonCode, text: str) -> None:
        """Answer a publish with a reason code. :raises MqttError: for QoS 0, which has no answer."""
        if not qos:
            raise MqttError(reason, text)
        packet_type = PacketType.PUBACK if qos == 1 else PacketType.PUBREC
        self._await(packet_type, packet_id, TAKEN, False, reason, text)

    # Topics and properties

    def _target(self, topic: bytes) -> Target:
        scope = self._scope
        scope.journal.budget.work += _TOPIC_WORK
        text = text_of(topic)
        if not text:
            raise protocol_error("PUBLISH with neither a topic nor an alias")  # 3.3.2.1
        check_topic(text)
        routing_key = scope.mapping.routing_key(text)
        scope.host.publishing()
        version = self._vhost.version
        is_intercepted = self._vhost.interception.publishing_to(scope.exchange.name, routing_key) is not None
        target = Target(scope.exchange, routing_key, self._refusal(text, routing_key), version, is_intercepted)
        if len(topic) <= _LONGEST_CACHED_TOPIC:
            remember(self._targets, topic, target, _MAX_CACHED)
        return target

    def _refusal(self, topic: str, routing_key: str) -> TopicRefusal | None:
        """Return the reason why a topic does not accept publishes; ``None`` if it does."""
        scope = self._scope
        if objection := scope.settings.topics.objection(topic, routing_key):
            return TopicRefusal(ReasonCode.TOPIC_NAME_INVALID, objection)
        if not scope.may_publish(topic, routing_key):
            text = f"access to topic '{shown(topic)}' refused for user '{scope.user_name}'"
            return TopicRefusal(ReasonCode.NOT_AUTHORIZED, text)
        return None

    def _bare_header(self, flags: int) -> MqttHeader:
        """Return the header of a message without properties."""
        if self._bare is _NO_HEADERS:
            self._bare = [None] * len(_NO_HEADERS)
        header = self._bare[flags] = self._header(flags, b"")[0]
        return header

    def _header(self, flags: int, block: bytes) -> tuple[MqttHeader, PublishProperties]:
        """Decode the properties. Those with an expiry are not cached, because the header holds the arrival time."""
        self._scope.journal.budget.work += len(block) >> _BYTES_A_UNIT
        properties = scan_publish_properties(block)
        is_v5 = self._scope.version == 5
        arrived_at_ms = self._scope.journal.now_ms if properties.message_expiry_s is not None else 0
        header = mqtt_header(
            qos=flags >> 1 & 3,
            retain=bool(flags & _RETAIN),
            version5=is_v5,
            client_id=self._scope.client_id,
            block=without_alias(block) if properties.topic_alias else block,
            arrived_at_ms=arrived_at_ms,
            mapping=self._scope.mapping,
        )
        if not arrived_at_ms and len(block) <= _LONGEST_CACHED:
            remember(self._headers, (flags, block), (header, properties), _MAX_CACHED)
        return header, properties


def _is_utf8(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True
