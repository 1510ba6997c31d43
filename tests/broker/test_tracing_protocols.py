"""The firehose copies published and delivered messages of each protocol; its queue is bound before tracing is
enabled.

RabbitMQ puts the same headers on every copy. MQTT and STOMP clients open no channel: their copies have the channel
number that RabbitMQ uses, 0 for MQTT and 1 for STOMP.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel

from tests.broker.conftest import Connect
from tests.interop.amqp_clients.pika_client import wait_for
from tests.interop.mqtt_clients.paho_client import V5, V311, Paho
from tests.interop.stomp_clients.stomp_client import Stomp
from tests.interop.stomp_clients.stomp_server import StompServer
from tests.management_client import put
from tests.running import Gateway

TRACE = "amq.rabbitmq.trace"

#: The headers RabbitMQ sets on both kinds of copies, and those of each kind.
COMMON = {"exchange_name", "routing_keys", "properties", "node", "vhost", "connection", "channel", "user"}
PUBLISHED = COMMON | {"routed_queues"}
DELIVERED = COMMON | {"redelivered"}


class Copy(NamedTuple):
    routing_key: str
    body: bytes
    headers: dict[str, Any]


@pytest.fixture
def amqp(gateway: Gateway, connect: Connect) -> BlockingChannel:
    gateway.start()
    return connect().channel()


@pytest.fixture
def server(gateway: Gateway, amqp: BlockingChannel) -> StompServer:
    return StompServer.of(gateway)


@pytest.fixture
def stomp_client(server: StompServer) -> Iterator[Stomp]:
    client = Stomp(server).connect()
    yield client
    client.close()


@pytest.fixture
def mqtt_client(server: StompServer) -> Iterator[Callable[..., Paho]]:
    made: list[Paho] = []

    def make(*arguments: Any) -> Paho:
        made.append(Paho(server.mqtt, *arguments))
        made[-1].connect()
        return made[-1]

    yield make
    for client in made:
        client.close()


@pytest.fixture
def copies(gateway: Gateway, amqp: BlockingChannel) -> Callable[[int], list[Copy]]:
    """Bind a queue to the trace exchange, then enable tracing; return a function that fetches the next copies."""
    amqp.queue_declare("trace", exclusive=True)
    amqp.queue_bind("trace", TRACE, "#")
    put(gateway, "vhosts/%2F", {"tracing": True})
    arrived: list[Copy] = []
    amqp.basic_consume(
        "trace",
        lambda _c, deliver, properties, body: arrived.append(Copy(deliver.routing_key, body, properties.headers)),
        auto_ack=True,
    )

    def fetch(count: int) -> list[Copy]:
        wait_for(amqp.connection, lambda: len(arrived) >= count)
        taken = list(arrived)
        arrived.clear()
        return taken

    return fetch


Copies = Callable[[int], list[Copy]]


def keys_and_bodies(copies: list[Copy]) -> list[tuple[str, bytes]]:
    return [(copy.routing_key, copy.body) for copy in copies]


def test_an_amqp_message_is_copied(amqp: BlockingChannel, copies: Copies) -> None:
    amqp.queue_declare("q", exclusive=True)
    amqp.queue_bind("q", "amq.topic", "a.*")
    properties = pika.BasicProperties(content_type="text/plain", delivery_mode=2, priority=3, headers={"a": 1})
    amqp.basic_publish("amq.topic", "a.b", b"seen", properties)
    assert amqp.basic_get("q", auto_ack=True)[2] == b"seen"
    published, delivered = copies(2)
    assert keys_and_bodies([published, delivered]) == [("publish.amq.topic", b"seen"), ("deliver.q", b"seen")]
    assert (set(published.headers), set(delivered.headers)) == (PUBLISHED, DELIVERED)
    assert published.headers["routed_queues"] == ["q"]
    assert delivered.headers["redelivered"] == 0
    for headers in (published.headers, delivered.headers):
        assert (headers["exchange_name"], headers["routing_keys"]) == ("amq.topic", ["a.b"])
        assert (headers["vhost"], headers["user"], headers["channel"]) == ("/", "guest", 1)
        assert headers["properties"] == {
            "content_type": "text/plain",
            "delivery_mode": 2,
            "priority": 3,
            "headers": {"a": 1},
        }


def test_an_mqtt_message_is_copied(mqtt_client: Callable[..., Paho], copies: Copies) -> None:
    publisher, subscriber = mqtt_client(V311, "publisher"), mqtt_client(V5, "subscriber")
    subscriber.subscribe("a/+", qos=1)
    publisher.publish("a/b", b"seen", qos=1)
    assert subscriber.next().payload == b"seen"
    published, delivered = copies(2)
    queue = "mqtt-subscription-subscriberqos1"
    assert keys_and_bodies([published, delivered]) == [("publish.amq.topic", b"seen"), (f"deliver.{queue}", b"seen")]
    assert (set(published.headers), set(delivered.headers)) == (PUBLISHED, DELIVERED)
    assert published.headers["routed_queues"] == [queue]
    assert delivered.headers["redelivered"] == 0
    for headers in (published.headers, delivered.headers):
        assert (headers["exchange_name"], headers["routing_keys"]) == ("amq.topic", ["a.b"])
        assert (headers["vhost"], headers["user"], headers["channel"]) == ("/", "guest", 0)
        assert headers["properties"]["delivery_mode"] == 2
    assert published.headers["connection"] != delivered.headers["connection"]


def test_an_mqtt_message_without_a_subscriber_is_copied(mqtt_client: Callable[..., Paho], copies: Copies) -> None:
    mqtt_client(V5, "publisher").publish("no/subscriber", b"lost")
    (published,) = copies(1)
    assert (published.routing_key, published.body) == ("publish.amq.topic", b"lost")
    assert published.headers["routing_keys"] == ["no.subscriber"]
    assert published.headers["routed_queues"] == []
    assert published.headers["properties"]["delivery_mode"] == 1


def test_a_stomp_message_is_copied(stomp_client: Stomp, copies: Copies) -> None:
    stomp_client.subscribe("/queue/q")
    stomp_client.send("/queue/q", b"seen", content_type="text/plain", persistent="true", colour="blue")
    assert stomp_client.bodies(1) == [b"seen"]
    published, delivered = copies(2)
    assert keys_and_bodies([published, delivered]) == [("publish.", b"seen"), ("deliver.q", b"seen")]
    assert (set(published.headers), set(delivered.headers)) == (PUBLISHED, DELIVERED)
    assert published.headers["routed_queues"] == ["q"]
    assert delivered.headers["redelivered"] == 0
    for headers in (published.headers, delivered.headers):
        assert (headers["exchange_name"], headers["routing_keys"]) == ("", ["q"])
        assert (headers["vhost"], headers["user"], headers["channel"]) == ("/", "guest", 1)
        assert headers["properties"]["content_type"] == "text/plain"
        assert headers["properties"]["delivery_mode"] == 2
        assert headers["properties"]["headers"] == {"colour": "blue"}
