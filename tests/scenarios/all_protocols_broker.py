"""One broker with clients of all protocols: their state machines, a store in memory, a fake clock.

Clients of MQTT are those of ``tests.protocols.mqtt.dialogue``, clients of AMQP those of
``tests.protocols.amqp.dialogue``::

    gateway = AllProtocolsBroker()
    sensor, worker = gateway.client("sensor"), gateway.peer()
    worker.send(*queue("readings", "sensors.#")).receive()
    sensor.publish("sensors/1", b"23")
    assert fetched(worker, "readings").body == b"23"
"""

from itertools import count
from typing import Any, ClassVar

from pamqp import commands

from gateway.kernel.journal.records.topology import PolicyRecord
from gateway.kernel.messages.message import HeaderFormat, Properties, Value
from gateway.kernel.messages.native_header import NATIVE
from gateway_amqp.header import AMQP
from gateway_amqp.listener_context import AmqpContext
from gateway_amqp.properties import decode_properties
from gateway_mqtt.translation.header import MQTT
from gateway_stomp.header import STOMP
from gateway_stomp.listener_context import StompContext
from tests.protocols.amqp.dialogue import Peer
from tests.protocols.amqp.frame_reader import ReceivedFrame
from tests.protocols.amqp.frames import Publication, Sent
from tests.protocols.mqtt.dialogue import Client, Gateway
from tests.protocols.stomp.dialogue import Client as StompClient

TOPICS = "amq.topic"


class AmqpSide:
    """The broker as peers of AMQP use it."""

    def __init__(self, gateway: "AllProtocolsBroker") -> None:
        tokens = count(1)
        self.broker, self.turn = gateway.broker, gateway.turn
        self.settle, self.end_turn = gateway.settle, gateway.end_turn
        self.settings = AmqpContext(
            gateway.broker, gateway.settings.access_of("/"), gateway.settings.access_of, lambda: f"amqp-{next(tokens)}"
        )


class StompSide:
    """The broker as clients of STOMP use it."""

    def __init__(self, gateway: "AllProtocolsBroker") -> None:
        tokens = count(1)
        self.broker, self.turn = gateway.broker, gateway.turn
        self.settle, self.end_turn = gateway.settle, gateway.end_turn
        settings = gateway.settings
        login = settings.access_of("/")
        self.settings = StompContext(gateway.broker, settings.access_of, login, lambda: f"stomp-{next(tokens)}")


class AllProtocolsBroker(Gateway):
    """The broker: an MQTT gateway with listeners for AMQP and STOMP."""

    formats: ClassVar[tuple[HeaderFormat, ...]] = (AMQP, MQTT, STOMP, NATIVE)

    def __init__(self, **options: Any) -> None:  # Any: those of Gateway
        super().__init__(**options)
        self._door = AmqpSide(self)
        self._stomp_door = StompSide(self)

    def stomp(self, version: str = "1.2") -> StompClient:
        """Return a STOMP client with an open connection."""
        client = StompClient(self._stomp_door, version)  # type: ignore[arg-type]  # all that it asks of its gateway
        client.connect()
        assert client.welcome.verb == "CONNECTED"
        return client

    def peer(self) -> Peer:
        """Return an AMQP peer with channel 1 open."""
        peer = Peer(self._door)  # type: ignore[arg-type]  # all that a peer asks of its gateway
        peer.open()
        peer.send(commands.Channel.Open()).receive()
        return peer

    def policy(self, pattern: str, **definition: Value) -> None:
        """Set a policy for queues; ``max_length`` means ``max-length``."""
        settings = {name.replace("_", "-"): value for name, value in definition.items()}
        self.broker.put_policy(PolicyRecord("/", "p", False, pattern, "queues", 0, settings))
        self.settle()


def own_queue(client_id: str, level: int = 1) -> str:
    """Return the name of the queue of a client's QoS 0 subscriptions, or of those above."""
    return f"mqtt-subscription-{client_id}qos{level}"


def queue(name: str, *keys: str, **arguments: Value) -> list[Sent]:
    """Declare a durable queue, bound to the topic exchange by these keys."""
    asked: dict[str, Any] = {key.replace("_", "-"): value for key, value in arguments.items()}
    declared: list[Sent] = [commands.Queue.Declare(0, name, durable=True, arguments=asked)]
    return declared + [commands.Queue.Bind(0, name, TOPICS, key) for key in keys]


def published(key: str, body: bytes = b"hi", *, exchange: str = TOPICS, **properties: Any) -> Publication:
    """Return a publish to the topic exchange."""
    return Publication(exchange, key, body, **properties)


def fetched(peer: Peer, name: str) -> ReceivedFrame:
    """Get and acknowledge the first message of a queue."""
    (received,) = peer.send(commands.Basic.Get(0, name, no_ack=True)).receive_frames()
    assert isinstance(received.method, commands.Basic.GetOk), str(received)
    return received


def all_of(peer: Peer, name: str) -> list[bytes]:
    """Get and acknowledge all messages of a queue."""
    bodies: list[bytes] = []
    while True:
        (received,) = peer.send(commands.Basic.Get(0, name, no_ack=True)).receive_frames()
        if not isinstance(received.method, commands.Basic.GetOk):
            return bodies
        bodies.append(received.body)


def key_of(received: ReceivedFrame) -> str:
    """Return the routing key of a received message."""
    assert isinstance(received.method, commands.Basic.GetOk | commands.Basic.Deliver)
    return str(received.method.routing_key)


def properties_of(received: ReceivedFrame) -> Properties:
    """Return the properties of a received message."""
    return decode_properties(received.properties)


__all__ = [
    "AllProtocolsBroker",
    "Client",
    "all_of",
    "fetched",
    "key_of",
    "own_queue",
    "properties_of",
    "published",
    "queue",
]
