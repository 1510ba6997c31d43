"""The column of MQTT: what a table of behaviour publishes over MQTT 5.0, as far as MQTT can say it."""

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any, Final

from gateway.kernel.queueing.queue import DeliveryOutcome
from tests.behaviour.edges import AmqpEdge, Inexpressible, Received
from tests.protocols.mqtt.packets import content_type, correlation_data, message_expiry, user_property
from tests.scenarios.all_protocols_broker import TOPICS, AllProtocolsBroker

#: What a PUBACK says when the broker took responsibility: nothing, or that nobody listens.
_TAKEN: Final = ("", " NO_MATCHING_SUBSCRIBERS")


class MqttEdge:
    """A publisher of MQTT 5.0 at QoS 1. It receives over AMQP: MQTT cannot fetch from a queue by its name."""

    def __init__(self, house: AllProtocolsBroker) -> None:
        self._house = house
        self._publisher = house.client("publisher")
        self._receiver = AmqpEdge(house)
        self._packet_ids = count(1)

    def publish(self, exchange: str, routing_key: str, body: bytes, **properties: Any) -> bool:
        """Publish to the topics, to which the queue or exchange meant is bound; return whether the broker took it."""
        vhost = self._house.vhost
        if not routing_key:
            raise Inexpressible("a topic of no letters")
        if exchange not in ("", TOPICS):
            vhost.bind(vhost.exchange(TOPICS), vhost.exchange(exchange), routing_key)
        elif not exchange and routing_key in vhost.queue_by_name:
            vhost.bind(vhost.exchange(TOPICS), vhost.queue(routing_key), routing_key)
        id = next(self._packet_ids)
        block = b"".join(_property(name, value) for name, value in properties.items())
        (answer,) = self._publisher.publish(routing_key.replace(".", "/"), body, qos=1, id=id, properties=block)
        return answer.removeprefix(f"PUBACK #{id}") in _TAKEN

    def get(self, queue: str) -> Received | None:
        """Fetch one message over AMQP."""
        return self._receiver.get(queue)

    def consume(self, queue: str, prefetch: int = 0) -> None:
        """Begin to consume over AMQP."""
        self._receiver.consume(queue, prefetch)

    def received(self) -> Sequence[Received]:
        """Return what was pushed since the last look."""
        return self._receiver.received()

    def settle(self, received: Received, outcome: DeliveryOutcome) -> None:
        """Settle one message."""
        self._receiver.settle(received, outcome)

    def leave(self) -> None:
        """Go away without a word, the receiver as well as the publisher."""
        self._receiver.leave()
        self._publisher.lose()


def _property(name: str, value: object) -> bytes:
    """Return a property of a PUBLISH. QoS 1 is MQTT's way to say that a message is persistent."""
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
            raise Inexpressible(f"{name} {value!r}")
