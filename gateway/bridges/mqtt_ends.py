"""MQTT as the source and the destination of a bridge."""

from collections.abc import Callable
from itertools import count
from typing import Any, Final, Protocol

from paho.mqtt.client import MQTTMessage
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from pika.spec import BasicProperties

from gateway.bridges.mqtt_connection import MqttConnection
from gateway.bridges.parcel import Parcel

#: The exchange of MQTT clients at AMQP brokers.
TOPIC_EXCHANGE: Final = "amq.topic"

#: The header with the QoS of a message that an MQTT client published, in RabbitMQ and here.
PUBLISH_QOS: Final = "x-mqtt-publish-qos"

#: Publishes without an answer at a time.
_MOST_UNANSWERED: Final = 1000

_PERSISTENT: Final = 2


class TopicMap(Protocol):
    """Conversion between topics and routing keys, as the MQTT clients of a virtual host see them."""

    def topic(self, routing_key: str) -> str:
        """Return the topic of a routing key."""
        ...

    def routing_key(self, topic: str) -> str:
        """Return the routing key of a topic."""
        ...

    def binding_key(self, filter: str) -> str:
        """Return the binding key of a filter."""
        ...


class MqttSource:
    """Receives the messages of a session. ``routing_key_of`` converts topics."""

    def __init__(self, connection: MqttConnection, routing_key_of: Callable[[str], str]) -> None:
        self._connection = connection
        self._routing_key_of = routing_key_of
        self._receive: Callable[[Parcel], None] = lambda parcel: None
        self._tags = count(1)
        self._unsettled: dict[int, MQTTMessage] = {}
        self._early: list[MQTTMessage] = []
        self._is_started = False
        connection.on_message = self._received

    def start(self, receive: Callable[[Parcel], None]) -> None:
        """Begin to call ``receive`` with each message. Those of the session may have come before."""
        self._receive = receive
        self._is_started = True
        early, self._early = self._early, []
        for message in early:
            self._received(message)

    def accept(self, tag: int) -> None:
        """Acknowledge a message to the server."""
        message = self._unsettled.pop(tag, None)
        if message is not None:
            self._connection.acknowledge(message.mid, message.qos)
            self._connection.settled()

    def requeue(self, tag: int) -> None:
        """Receive a message once more: MQTT has no way to return it."""
        message = self._unsettled.pop(tag, None)
        if message is not None:
            self._received(message)

    def pause(self, is_paused: bool) -> None:
        """Do nothing: the number of unsettled messages is limited."""

    def close(self) -> None:
        """Close the connection; the server sends messages that are not settled again."""
        self._connection.close()

    def _received(self, message: MQTTMessage) -> None:
        if not self._is_started:
            self._early.append(message)
            return
        tag = next(self._tags)
        self._unsettled[tag] = message
        self._receive(
            Parcel(
                tag,
                TOPIC_EXCHANGE,
                self._routing_key_of(message.topic),
                _amqp_properties(message),
                bytes(message.payload),
                message.dup,
            )
        )


class MqttDestination:
    """Publishes. ``topic_of`` and ``qos`` return those of a message; with an invalid topic it is refused.

    The acknowledgement of QoS 1 and 2 is the confirm; with QoS 0 there is none but that it was sent.
    """

    def __init__(
        self,
        connection: MqttConnection,
        topic_of: Callable[[Parcel], str],
        qos: Callable[[Parcel], int],
        retain: bool,
    ) -> None:
        self.on_ready: Callable[[], None] = lambda: None
        self._connection = connection
        self._topic_of = topic_of
        self._qos = qos
        self._retain = retain
        self._unanswered: dict[int, Callable[[bool], None]] = {}
        connection.on_published = self._answered

    @property
    def is_blocked(self) -> bool:
        """Whether too many messages wait for their answers."""
        return len(self._unanswered) >= _MOST_UNANSWERED

    def publish(self, parcel: Parcel, done: Callable[[bool], None]) -> None:
        """Send a message; see ``MessageDestination``."""
        properties = _mqtt_properties(parcel.properties) if self._connection.is_five else None
        topic, qos = self._topic_of(parcel), self._qos(parcel)
        try:
            number = self._connection.publish(topic, parcel.body, qos, self._retain, properties)
        except ValueError:  # no topic: it has a wildcard, or is too long
            done(False)
            return
        self._unanswered[number] = done

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _answered(self, number: int, is_accepted: bool) -> None:
        done = self._unanswered.pop(number, None)
        if done is not None:
            was_blocked = len(self._unanswered) == _MOST_UNANSWERED - 1
            done(is_accepted)
            if was_blocked and not self.is_blocked:
                self.on_ready()


def qos_of(properties: BasicProperties) -> int:
    """Return the QoS of a message: that of its MQTT publisher, else 1 for a persistent one."""
    qos = (properties.headers or {}).get(PUBLISH_QOS)
    if isinstance(qos, int) and 0 <= qos <= 2:
        return qos
    return 1 if properties.delivery_mode == _PERSISTENT else 0


def _amqp_properties(message: MQTTMessage) -> BasicProperties:
    """Return the AMQP properties of an MQTT message: those of MQTT 5, and the QoS."""
    five: Any = message.properties
    headers: dict[str, Any] = {PUBLISH_QOS: message.qos}
    properties = BasicProperties(delivery_mode=_PERSISTENT if message.qos else 1, headers=headers)
    if five is None:
        return properties
    headers |= dict(getattr(five, "UserProperty", ()))
    properties.content_type = getattr(five, "ContentType", None)
    properties.reply_to = getattr(five, "ResponseTopic", None)
    if (correlation := getattr(five, "CorrelationData", None)) is not None:
        properties.correlation_id = correlation.decode("utf-8", "replace")
    if (expiry_s := getattr(five, "MessageExpiryInterval", None)) is not None:
        properties.expiration = str(expiry_s * 1000)
    return properties


def _mqtt_properties(properties: BasicProperties) -> Any:
    """Return the properties of MQTT 5 for a message; headers that are no text are left out."""
    five: Any = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]  # paho's
    pairs = [(str(key), item) for key, item in (properties.headers or {}).items() if isinstance(item, str)]
    if pairs:
        five.UserProperty = pairs
    if properties.content_type:
        five.ContentType = properties.content_type
    if properties.correlation_id:
        five.CorrelationData = properties.correlation_id.encode()
    if properties.expiration and properties.expiration.isdigit():
        five.MessageExpiryInterval = -(-int(properties.expiration) // 1000)
    return five
