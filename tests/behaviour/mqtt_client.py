"""The MQTT 5.0 client of behaviour tests; it raises ``Unsupported`` for what MQTT cannot express."""

from collections.abc import Mapping
from itertools import count
from typing import Any, Final

from tests.behaviour.scenario import AmqpReceiver, Unsupported
from tests.protocols.mqtt.packets import content_type, correlation_data, message_expiry, user_property
from tests.scenarios.all_protocols_broker import TOPICS, AllProtocolsBroker

#: The reason of a PUBACK when the broker accepted the message: none, or no subscribers.
_ACCEPTED: Final = ("", " NO_MATCHING_SUBSCRIBERS")


class MqttClient(AmqpReceiver):
    """An MQTT 5.0 publisher with QoS 1. It receives over AMQP, because MQTT cannot fetch from a queue by name."""

    def __init__(self, broker: AllProtocolsBroker) -> None:
        self._broker = broker
        self._publisher = broker.client("publisher")
        super().__init__(broker, self._publisher.lose)
        self._packet_ids = count(1)

    def publish(self, exchange: str, routing_key: str, body: bytes, **properties: Any) -> bool:
        """Publish to the topic exchange, to which the target is bound; return whether the broker accepted it."""
        vhost = self._broker.vhost
        if not routing_key:
            raise Unsupported("an empty topic")
        if exchange not in ("", TOPICS):
            vhost.bind(vhost.exchange(TOPICS), vhost.exchange(exchange), routing_key)
        elif not exchange and routing_key in vhost.queue_by_name:
            vhost.bind(vhost.exchange(TOPICS), vhost.queue(routing_key), routing_key)
        id = next(self._packet_ids)
        block = b"".join(_property(name, value) for name, value in properties.items())
        (answer,) = self._publisher.publish(routing_key.replace(".", "/"), body, qos=1, id=id, properties=block)
        return answer.removeprefix(f"PUBACK #{id}") in _ACCEPTED


def _property(name: str, value: object) -> bytes:
    """Return a property of a PUBLISH. In MQTT, QoS 1 makes a message persistent."""
    match name, value:
        case ("delivery_mode", 2) | (_, None):
            return b""
        case "expiration", str() if value.isdigit() and int(value) % 1000 == 0:
            return message_expiry(int(value) // 1000)
        case "content_type", str():
            return content_type(value)
        case "correlation_id", str():
            return correlation_data(value.encode())
        case "headers", Mapping() if all(isinstance(each, str | int) for each in value.values()):
            return b"".join(user_property(header, str(each)) for header, each in value.items())
        case _:
            raise Unsupported(f"{name} {value!r}")
