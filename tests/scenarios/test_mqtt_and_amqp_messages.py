"""Messages between MQTT and AMQP: topics and routing keys, properties, and confirmations."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from pamqp import commands

from gateway.kernel.messages.message import Properties
from tests.protocols.amqp.dialogue import Peer
from tests.protocols.mqtt.packets import (
    Will,
    content_type,
    correlation_data,
    message_expiry,
    payload_format,
    response_topic,
    user_property,
)
from tests.scenarios.all_protocols_broker import (
    AllProtocolsBroker,
    Client,
    all_of,
    fetched,
    key_of,
    properties_of,
    published,
    queue,
)

#: topic, and its routing key
TOPICS = [
    pytest.param("a/b", "a.b", id="levels are words"),
    pytest.param("/a//b/", ".a..b.", id="empty levels are empty words"),
    pytest.param("v1.2/a", "v1%2E2.a", id="a dot is escaped"),
    pytest.param("*/a*", "%2A.a%2A", id="a star is escaped"),
    pytest.param("50%/a", "50%25.a", id="the percent sign is escaped"),
    pytest.param("%2E", "%252E", id="an escape sequence is escaped again"),
    pytest.param("räume/küche", "räume.küche", id="any character"),
    pytest.param("$own/a", "$own.a", id="a dollar"),
]

#: routing key of a publisher of another protocol, and the topic of the delivery
FOREIGN_KEYS = [
    pytest.param("a.b", "a/b", id="words are levels"),
    pytest.param("a/b.c", "a/b/c", id="a slash in a word makes levels"),
    pytest.param("a.*.b", "a/*/b", id="a star is only a wildcard of bindings"),
    pytest.param("a.+.#", "a/%2B/%23", id="characters not allowed in topics are escaped"),
    pytest.param("100%", "100%", id="a single percent sign"),
    pytest.param("%41", "%41", id="an escape of another character"),
    pytest.param("", "/", id="no key at all"),
]

#: filter, and the equivalent binding key
FILTERS = [
    pytest.param("a/+/c", "a.*.c", ["a/b/c", "a/x.y/c"], ["a/c", "a/b/b/c"], id="one level"),
    pytest.param("a/#", "a.#", ["a", "a/b", "a/b/c"], ["b", "ab"], id="all below"),
    pytest.param("a/v1.2/#", "a.v1%2E2.#", ["a/v1.2", "a/v1.2/b"], ["a/v1/2"], id="an escaped level"),
    pytest.param("#", "#", ["a", "/", "a/b"], [], id="everything"),
]


@pytest.fixture
def gateway() -> AllProtocolsBroker:
    return AllProtocolsBroker()


@pytest.fixture
def client(gateway: AllProtocolsBroker) -> Client:
    """Return a client that subscribes to everything."""
    client = gateway.client("one")
    client.subscribe("#", 2)
    return client


@pytest.fixture
def peer(gateway: AllProtocolsBroker) -> Peer:
    """Return a peer with a queue ``all`` of every message."""
    peer = gateway.peer()
    peer.send(*queue("all", "#")).receive()
    return peer


# Topics and keys


@pytest.mark.parametrize(("topic", "key"), TOPICS)
def test_a_topic_is_translated_to_a_routing_key_and_back(
    gateway: AllProtocolsBroker, peer: Peer, topic: str, key: str
) -> None:
    sensor, app = gateway.client("sensor"), gateway.client("app")
    app.subscribe(topic)
    sensor.publish(topic)
    assert app.receive() == [f"PUBLISH {topic} 'hi'"]
    assert key_of(fetched(peer, "all")) == key
    peer.send(published(key))
    assert app.receive() == [f"PUBLISH {topic} 'hi'"]


@pytest.mark.parametrize(("key", "topic"), FOREIGN_KEYS)
def test_a_foreign_routing_key_is_translated_to_a_topic(client: Client, peer: Peer, key: str, topic: str) -> None:
    peer.send(published(key)).receive()
    assert client.receive() == [f"PUBLISH {topic} 'hi'"]


@pytest.mark.parametrize(("filter", "binding_key", "wanted", "unwanted"), FILTERS)
def test_a_filter_and_its_binding_key_match_the_same_topics(
    gateway: AllProtocolsBroker, filter: str, binding_key: str, wanted: list[str], unwanted: list[str]
) -> None:
    peer, app, sensor = gateway.peer(), gateway.client("app"), gateway.client("sensor")
    peer.send(*queue("same", binding_key)).receive()
    app.subscribe(filter)
    for topic in wanted + unwanted:
        sensor.publish(topic, topic.encode())
    bodies = [topic.encode() for topic in wanted]
    assert app.receive() == [f"PUBLISH {topic} '{topic}'" for topic in wanted]
    assert all_of(peer, "same") == bodies


def test_a_virtual_host_can_use_rabbitmqs_mapping() -> None:
    gateway = AllProtocolsBroker(lossy_vhosts=frozenset({"/"}))
    peer, app, sensor = gateway.peer(), gateway.client("app"), gateway.client("sensor")
    peer.send(*queue("all", "#")).receive()
    app.subscribe("v1/2")
    sensor.publish("v1.2")
    assert key_of(fetched(peer, "all")) == "v1.2"
    assert app.receive() == ["PUBLISH v1/2 'hi'"]


# Properties, from MQTT

SAID = [
    pytest.param(b"", Properties(), id="nothing"),
    pytest.param(content_type("text/plain"), Properties(content_type="text/plain"), id="content type"),
    pytest.param(content_type("x" * 256), Properties(), id="content type too long for AMQP"),
    pytest.param(content_type("tëxt"), Properties(), id="content type beyond ASCII"),
    pytest.param(correlation_data(b"c-1"), Properties(correlation_id="c-1"), id="correlation data, a text"),
    pytest.param(
        correlation_data(b"\xff\0"), Properties(headers={"x-correlation-id": b"\xff\0"}), id="correlation data, binary"
    ),
    pytest.param(
        correlation_data(b"c" * 256), Properties(headers={"x-correlation-id": b"c" * 256}), id="correlation data, long"
    ),
    pytest.param(
        response_topic("a/v1.2"), Properties(headers={"x-reply-to-topic": "a.v1%2E2"}), id="response topic, as a key"
    ),
    pytest.param(message_expiry(10), Properties(expiration="10000"), id="expiry, in milliseconds"),
    pytest.param(payload_format(1), Properties(), id="payload format: not available in AMQP"),
    pytest.param(
        user_property("b", "2") + user_property("a", "1") + user_property("b", "3"),
        Properties(headers={"a": "1", "b": "2"}),
        id="user properties: the first of each name",
    ),
    pytest.param(user_property("x" * 256, "1"), Properties(), id="a user property whose name is too long"),
]


@pytest.mark.parametrize(("properties", "expected"), SAID)
@pytest.mark.parametrize(("qos", "mode"), [(0, 1), (1, 2), (2, 2)])
def test_mqtt_properties_are_translated_to_amqp(
    gateway: AllProtocolsBroker, peer: Peer, properties: bytes, expected: Properties, qos: int, mode: int
) -> None:
    sensor = gateway.client("sensor")
    sensor.publish("a", b"body", qos=qos, id=1, properties=properties)
    received = fetched(peer, "all")
    said = properties_of(received)
    assert received.body == b"body"
    assert said.delivery_mode == mode
    assert (said.content_type, dict(said.headers)) == (expected.content_type, dict(expected.headers))
    assert (said.correlation_id, said.expiration) == (expected.correlation_id, expected.expiration)
    assert (said.reply_to, said.message_id, said.timestamp, said.user_id, said.app_id) == (None,) * 5


@pytest.mark.parametrize("version", [3, 4])
@pytest.mark.parametrize(("qos", "mode"), [(0, 1), (1, 2), (2, 2)])
def test_messages_before_5_0_carry_only_their_qos(
    gateway: AllProtocolsBroker, peer: Peer, version: int, qos: int, mode: int
) -> None:
    gateway.client("sensor", version=version).publish("a", b"body", qos=qos, id=1)
    assert properties_of(fetched(peer, "all")) == Properties(delivery_mode=mode)


# Properties, from AMQP

TOLD: list[Any] = [
    pytest.param({}, "PUBLISH a 'hi'", id="nothing"),
    pytest.param({"delivery_mode": 1}, "PUBLISH a 'hi'", id="transient is QoS 0"),
    pytest.param({"delivery_mode": 2}, "PUBLISH q1 #1 a 'hi'", id="persistent is QoS 1"),
    pytest.param({"content_type": "text/plain"}, "PUBLISH a 'hi' CONTENT_TYPE='text/plain'", id="content type"),
    pytest.param({"correlation_id": "c-1"}, "PUBLISH a 'hi' CORRELATION_DATA='c-1'", id="correlation id"),
    pytest.param(
        {"headers": {"x-correlation-id": b"\xff\0"}},
        r"PUBLISH a 'hi' CORRELATION_DATA='\xff\x00'",
        id="correlation id, a binary one",
    ),
    pytest.param(
        {"headers": {"x-reply-to-topic": "a.v1%2E2"}}, "PUBLISH a 'hi' RESPONSE_TOPIC='a/v1.2'", id="response topic"
    ),
    pytest.param({"expiration": "1999"}, "PUBLISH a 'hi' MESSAGE_EXPIRY_INTERVAL=1", id="expiration, whole seconds"),
    pytest.param(
        {"headers": {"t": "text", "n": 7, "f": 1.5, "b": True}},
        "PUBLISH a 'hi' USER_PROPERTY=('t', 'text') USER_PROPERTY=('n', '7') USER_PROPERTY=('f', '1.5')"
        " USER_PROPERTY=('b', 'true')",
        id="headers with a text form",
    ),
    pytest.param(
        {
            "headers": {
                "table": {"a": 1}, "array": [1], "bytes": b"\0", "nothing": None,
                "time": datetime(2024, 1, 1, tzinfo=UTC), "decimal": Decimal("1.5"),
            }
        },
        "PUBLISH a 'hi'",
        id="headers without a text form",
    ),
    pytest.param(
        {
            "content_encoding": "gzip", "priority": 3, "reply_to": "q", "message_id": "m", "type": "t",
            "app_id": "a", "user_id": "guest", "timestamp": datetime(2024, 1, 1, tzinfo=UTC),
        },
        "PUBLISH a 'hi'",
        id="properties not available in MQTT",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("properties", "line"), TOLD)
def test_amqp_properties_are_translated_to_mqtt(
    gateway: AllProtocolsBroker, properties: dict[str, Any], line: str
) -> None:
    app, old, peer = gateway.client("app"), gateway.client("old", version=4), gateway.peer()
    app.subscribe("a", 2)
    old.subscribe("a", 2)
    peer.send(published("a", **properties)).receive()
    assert app.receive() == [line]
    assert old.receive() == [line.partition("'hi'")[0] + "'hi'"]


# Confirmations


def test_a_publisher_of_mqtt_is_acknowledged_when_the_amqp_queue_is_durable(
    gateway: AllProtocolsBroker, peer: Peer
) -> None:
    sensor = gateway.client("sensor")
    sensor.machine.receive(sensor.write.publish("a", b"kept", qos=1, id=7))
    assert sensor.receive_now() == []
    assert sensor.receive() == ["PUBACK #7"]
    assert all_of(gateway.crashed().peer(), "all") == [b"kept"]


def test_a_publisher_of_amqp_is_confirmed_when_the_session_is_durable(gateway: AllProtocolsBroker) -> None:
    sleeper, peer = gateway.client("sleeper", expiry=600), gateway.peer()
    sleeper.subscribe("a", 1)
    sleeper.lose()
    peer.send(commands.Confirm.Select()).receive()
    peer.send(published("a", b"kept", delivery_mode=2))
    assert peer.receive_now() == []
    assert peer.receive() == ["Basic.Ack(delivery_tag=1, multiple=False)"]
    back = gateway.crashed().client("sleeper", is_clean=False, expiry=600)
    assert back.backlog == ["PUBLISH q1 #1 dup a 'kept'"]  # after a kill it is unknown who received it


def test_a_full_queue_refuses_publishers_of_mqtt(gateway: AllProtocolsBroker, peer: Peer) -> None:
    peer.send(*queue("small", "small", x_max_length=1, x_overflow="reject-publish")).receive()
    peer.send(commands.Queue.Unbind(0, "all", "amq.topic", "#")).receive()
    new, old = gateway.client("new"), gateway.client("old", version=4)
    assert new.publish("small", b"1", qos=1, id=1) == ["PUBACK #1"]
    assert new.publish("small", b"2", qos=1, id=2) == ["PUBACK #2 QUOTA_EXCEEDED"]
    assert new.publish("small", b"3", qos=2, id=3) == ["PUBREC #3 QUOTA_EXCEEDED"]
    assert old.publish("small", b"4", qos=1, id=4) == []
    assert all_of(peer, "small") == [b"1"]


def test_a_binding_of_amqp_counts_as_a_subscriber(gateway: AllProtocolsBroker) -> None:
    sensor, peer = gateway.client("sensor"), gateway.peer()
    assert sensor.publish("a", qos=1, id=1) == ["PUBACK #1 NO_MATCHING_SUBSCRIBERS"]
    peer.send(*queue("all", "#")).receive()
    assert sensor.publish("a", qos=1, id=2) == ["PUBACK #2"]


def test_exactly_once_delivery_applies_to_amqp_queues(gateway: AllProtocolsBroker, peer: Peer) -> None:
    sensor = gateway.client("sensor")
    assert sensor.publish("a", b"once", qos=2, id=9) == ["PUBREC #9"]
    assert sensor.publish("a", b"once", qos=2, id=9, dup=True) == ["PUBREC #9"]
    assert sensor.pubrel(9) == ["PUBCOMP #9"]
    assert all_of(peer, "all") == [b"once"]


def test_retained_messages_reach_amqp_queues(gateway: AllProtocolsBroker, peer: Peer) -> None:
    sensor, late = gateway.client("sensor"), gateway.client("late")
    sensor.publish("lamp", b"on", retain=True)
    assert fetched(peer, "all").body == b"on"
    peer.send(published("lamp", b"off")).receive()  # AMQP has no retained messages
    assert late.subscribe("lamp") == ["SUBACK #1 0", "PUBLISH retain lamp 'on'"]


def test_a_will_reaches_amqp(gateway: AllProtocolsBroker, peer: Peer) -> None:
    will = Will("status/mortal", b"gone", qos=1, properties=content_type("text/plain"))
    gateway.client("mortal", will=will).lose()
    received = fetched(peer, "all")
    assert (key_of(received), received.body) == ("status.mortal", b"gone")
    assert properties_of(received) == Properties(content_type="text/plain", delivery_mode=2)


def test_a_request_of_mqtt_is_answered_over_amqp(gateway: AllProtocolsBroker, peer: Peer) -> None:
    client = gateway.client("client")
    client.subscribe("answers/client", 1)
    asked = response_topic("answers/client") + correlation_data(b"sum-1")
    client.publish("add", b"2 3", qos=1, id=1, properties=asked)
    request = properties_of(fetched(peer, "all"))
    key = str(request.headers["x-reply-to-topic"])
    peer.send(published(key, b"5", correlation_id=request.correlation_id)).receive()
    assert client.receive() == ["PUBLISH answers/client '5' CORRELATION_DATA='sum-1'"]


def test_a_request_of_amqp_is_answered_over_mqtt(gateway: AllProtocolsBroker, peer: Peer) -> None:
    server = gateway.client("server")
    server.subscribe("add", 1)
    peer.send(*queue("answers", "answers.peer")).receive()
    peer.send(published("add", b"2 3", correlation_id="sum-1", headers={"x-reply-to-topic": "answers.peer"})).receive()
    assert server.receive() == ["PUBLISH add '2 3' RESPONSE_TOPIC='answers/peer' CORRELATION_DATA='sum-1'"]
    server.publish("answers/peer", b"5", properties=correlation_data(b"sum-1"))
    answer = fetched(peer, "answers")
    assert (answer.body, properties_of(answer).correlation_id) == (b"5", "sum-1")
