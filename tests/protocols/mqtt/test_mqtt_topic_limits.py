"""Limits of this server for topics and filters; a refusal does not affect other messages."""

import pytest

from gateway.kernel.messages.message import Message, Properties
from gateway.kernel.messages.native_header import native_header
from gateway_mqtt.translation.topics import LOSSY, REVERSIBLE, TopicBounds
from tests.protocols.mqtt.dialogue import Gateway
from tests.protocols.mqtt.packets import Will

#: Escaped, they take three times as many bytes, more than a routing key in the store may have.
DOTS = "." * 40_000
DEEP = "/" * 201
DEEPEST = "/" * 200


@pytest.fixture
def gateway() -> Gateway:
    return Gateway()


@pytest.mark.parametrize("topic", [DOTS, DEEP], ids=["dots", "deep"])
@pytest.mark.parametrize("retain", [False, True])
def test_a_publish_to_a_topic_over_the_limits_is_refused_and_the_connection_stays_open(
    gateway: Gateway, topic: str, retain: bool
) -> None:
    reader, client = gateway.client("r"), gateway.client("c")
    reader.subscribe("#", 1)
    assert client.publish(topic, qos=1, id=1, retain=retain) == ["PUBACK #1 TOPIC_NAME_INVALID"]
    assert client.publish(topic, qos=2, id=2, retain=retain) == ["PUBREC #2 TOPIC_NAME_INVALID"]
    assert client.publish("a", qos=2, id=2) == ["PUBREC #2"]
    assert [line.split()[0:4:3] for line in reader.receive()] == [["PUBLISH", "a"]]
    assert len(gateway.vhost.retained) == 0


@pytest.mark.parametrize("topic", [DOTS, DEEP], ids=["dots", "deep"])
def test_a_publish_to_a_topic_over_the_limits_without_a_negative_acknowledgement_ends_the_connection(
    gateway: Gateway, topic: str
) -> None:
    assert gateway.client("5").publish(topic) == ["DISCONNECT TOPIC_NAME_INVALID", "closed"]
    assert gateway.client("4", version=4).publish(topic, qos=1, id=1) == ["closed"]
    assert gateway.client("4", version=4).publish(topic) == ["closed"]


@pytest.mark.parametrize("topic", [DOTS, DEEP], ids=["dots", "deep"])
def test_a_will_with_a_topic_over_the_limits_refuses_the_connect(gateway: Gateway, topic: str) -> None:
    received = gateway.new_client().connect("c", will=Will(topic, b"x", retain=True))
    assert received == ["CONNACK TOPIC_NAME_INVALID", "closed"]
    assert gateway.vhost.sessions.get("c") is None


@pytest.mark.parametrize("filter", [DOTS, DEEP, "$share/g/" + DOTS, "$share/g/" + DEEP, DEEP + "/#"])
def test_a_filter_over_the_limits_is_refused_and_others_are_not(gateway: Gateway, filter: str) -> None:
    client = gateway.client("c")
    assert client.request(client.write.subscribe((filter, 1), ("a", 1))) == ["SUBACK #1 8f 1"]
    elder = gateway.client("4", version=4)
    assert elder.request(elder.write.subscribe((filter, 1), ("a", 1))) == ["SUBACK #1 80 1"]
    assert [len(session.subscriptions) for session in gateway.vhost.sessions] == [1, 1]


def test_a_topic_with_the_maximum_number_of_levels_is_delivered_and_retained(gateway: Gateway) -> None:
    reader, client = gateway.client("r"), gateway.client("c")
    assert reader.subscribe(DEEPEST, 1) == ["SUBACK #1 1"]
    assert client.publish(DEEPEST, qos=1, id=1, retain=True) == ["PUBACK #1"]
    assert reader.receive() == [f"PUBLISH q1 #1 {DEEPEST} 'hi'"]
    assert gateway.client("late").subscribe(DEEPEST[:-1] + "#") == ["SUBACK #1 0", f"PUBLISH retain {DEEPEST} 'hi'"]


def test_the_maximum_number_of_levels_is_a_setting() -> None:
    gateway = Gateway(topics=TopicBounds(2))
    client = gateway.client("c")
    assert client.publish("a/b", qos=1, id=1) == ["PUBACK #1 NO_MATCHING_SUBSCRIBERS"]
    assert client.publish("a/b/c", qos=1, id=1) == ["PUBACK #1 TOPIC_NAME_INVALID"]


def test_the_size_of_a_key_is_counted_in_stored_bytes() -> None:
    bounds = TopicBounds()
    for topic, mapping, is_accepted in (
        ("é" * 32_767, REVERSIBLE, True),
        ("." * 21_845, REVERSIBLE, True),
        ("." * 21_846, REVERSIBLE, False),
        ("é" * 21_845 + "." * 7_282, REVERSIBLE, False),
        ("." * 65_535, LOSSY, True),
    ):
        assert (bounds.objection(topic, mapping.routing_key(topic)) == "") is is_accepted


def test_an_error_text_cuts_a_long_topic(gateway: Gateway) -> None:
    client = gateway.client("c")
    client.publish(DOTS)
    (reason,) = [str(details["reason"]) for _, details in client.log_lines if "reason" in details]
    assert reason.startswith("'....")
    assert len(reason) < 250


@pytest.mark.parametrize("key", ["\ud800", "a.\ud800.b", "+" * 65_000], ids=["surrogate", "inner surrogate", "long"])
def test_a_routing_key_of_another_protocol_without_a_valid_topic_does_not_end_the_connection(
    gateway: Gateway, key: str
) -> None:
    readers = [gateway.client(f"r{qos}") for qos in (0, 1)]
    for qos, reader in enumerate(readers):
        reader.subscribe("#", qos)
    exchange = gateway.vhost.exchange("amq.topic")
    gateway.vhost.publish(exchange, Message("amq.topic", key, native_header(Properties()), b"odd"))
    gateway.vhost.publish(exchange, Message("amq.topic", "plain", native_header(Properties()), b"even"))
    assert [line.split("'")[1] for reader in readers for line in reader.receive()] == ["odd", "even"] * 2
