"""Retained messages: stored, replaced, cleared, and sent to new subscriptions (3.3.1.3, 3.8.3.1)."""

import pytest

from tests.conformance.mqtt.tables import statements
from tests.protocols.mqtt.dialogue import Client, Gateway
from tests.protocols.mqtt.packets import options, response_topic, user_property


@pytest.fixture
def writer(gateway: Gateway) -> Client:
    return gateway.client("writer")


def retained_for(gateway: Gateway, filter: str = "t", version: int = 5, qos: int = 2) -> list[str]:
    """Return the retained messages that a new client gets for a filter."""
    suback, *received = gateway.client("late", version).subscribe(filter, qos)
    assert suback == f"SUBACK #1 {qos}"
    return received


@statements("3.3.1-5", "3.3.1-5 3.3.1-8")
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_retained_message_is_stored_with_its_qos(gateway: Gateway, writer: Client, version: int, qos: int) -> None:
    writer.publish("t", qos=qos, id=qos, retain=True)
    mark = f"q{qos} #1 " if qos else ""
    assert retained_for(gateway, version=version) == [f"PUBLISH {mark}retain t 'hi'"]


@statements("3.3.1-5", "3.3.1-7")
@pytest.mark.parametrize("qos", [0, 1])
def test_a_retained_message_replaces_the_earlier_one(gateway: Gateway, writer: Client, version: int, qos: int) -> None:
    writer.publish("t", b"one", qos=1, id=1, retain=True)
    writer.publish("t", b"two", qos=qos, id=2, retain=True)
    mark = f"q{qos} #1 " if qos else ""
    assert retained_for(gateway, version=version) == [f"PUBLISH {mark}retain t 'two'"]


@statements("3.3.1-5", "3.3.1-5")
def test_a_retained_message_survives_a_crash(gateway: Gateway, writer: Client, version: int) -> None:
    properties = user_property("a", "b") + response_topic("r")
    writer.publish("t", retain=True, qos=1, id=1, properties=properties)
    [line] = retained_for(gateway.crashed(), version=version)
    suffix = " USER_PROPERTY=('a', 'b') RESPONSE_TOPIC='r'" if version == 5 else ""
    assert line == f"PUBLISH q1 #1 retain t 'hi'{suffix}"


@statements("3.3.1-6 3.3.1-7", "3.3.1-10 3.3.1-11")
def test_an_empty_retained_message_deletes_the_retained_one(gateway: Gateway, writer: Client, version: int) -> None:
    reader = gateway.client("r", version)
    reader.subscribe("t", options(0, as_published=version == 5))
    writer.publish("t", retain=True)
    writer.publish("t", b"", retain=True)
    mark = "retain " if version == 5 else ""
    assert reader.receive() == [f"PUBLISH {mark}t 'hi'", f"PUBLISH {mark}t ''"]  # delivered like any other message
    assert retained_for(gateway, version=version) == []
    assert retained_for(gateway.crashed(), version=version) == []


@statements("3.3.1-8", "3.3.1-12")
@pytest.mark.parametrize("payload", [b"new", b""])
def test_a_message_without_retain_does_not_change_the_retained_one(
    gateway: Gateway, writer: Client, version: int, payload: bytes
) -> None:
    writer.publish("t", b"old", retain=True)
    writer.publish("t", payload)
    writer.publish("other", payload)
    assert retained_for(gateway, "#", version) == ["PUBLISH retain t 'old'"]


@statements("3.3.1-9", "3.3.1-6 3.3.1-8")
def test_a_subscription_gets_all_matching_retained_messages(gateway: Gateway, writer: Client, version: int) -> None:
    for topic in ("a", "a/b", "a/b/c", "a/x/c", "b", "$a/b", "a.b", "/"):
        writer.publish(topic, topic.encode(), retain=True)
    expected = {
        "a/+/c": ["a/b/c", "a/x/c"], "a/#": ["a", "a/b", "a/b/c", "a/x/c"], "+": ["a", "a.b", "b"], "+/+": ["/", "a/b"],
        "#": ["/", "a", "a.b", "a/b", "a/b/c", "a/x/c", "b"], "$a/#": ["$a/b"], "a.b": ["a.b"], "c": [],
    }  # fmt: skip
    for filter, topics in expected.items():
        assert sorted(retained_for(gateway, filter, version)) == [
            f"PUBLISH retain {topic} '{topic}'" for topic in topics
        ]


@statements("3.3.1-10")
def test_retain_handling_1_sends_retained_messages_to_new_subscriptions_only(
    gateway: Gateway, writer: Client, version: int
) -> None:
    writer.publish("t", retain=True)
    reader = gateway.client("r", is_clean=False, expiry=100)
    asked = options(1, retain_handling=1)
    assert reader.subscribe("t", asked) == ["SUBACK #1 1", "PUBLISH retain t 'hi'"]
    assert reader.subscribe("t", asked) == ["SUBACK #1 1"]
    assert reader.subscribe("#", asked) == ["SUBACK #1 1", "PUBLISH retain t 'hi'"]
    reader.lose()
    back = gateway.client("r", is_clean=False, expiry=100)
    assert back.subscribe("t", asked) == ["SUBACK #1 1"]
    back.unsubscribe("t")
    assert back.subscribe("t", asked) == ["SUBACK #1 1", "PUBLISH retain t 'hi'"]


@statements("3.3.1-11")
def test_retain_handling_2_sends_no_retained_messages(gateway: Gateway, writer: Client, version: int) -> None:
    writer.publish("t", retain=True)
    assert gateway.client("r").subscribe("t", options(1, retain_handling=2)) == ["SUBACK #1 1"]


@statements("3.3.1-9 3.8.4-4", "3.8.4-3")
def test_subscribing_again_sends_retained_messages_again(gateway: Gateway, writer: Client, version: int) -> None:
    writer.publish("t", retain=True)
    reader = gateway.client("r", version)
    for _ in range(2):
        assert reader.subscribe("t") == ["SUBACK #1 0", "PUBLISH retain t 'hi'"]


@statements("3.3.1-12", "3.3.1-9")
@pytest.mark.parametrize("retain", [False, True])
@pytest.mark.parametrize("qos", [0, 1])
def test_a_message_to_an_existing_subscription_has_no_retain_flag(
    gateway: Gateway, writer: Client, version: int, retain: bool, qos: int
) -> None:
    reader = gateway.client("r", version)
    reader.subscribe("t", qos)
    writer.publish("t", retain=retain, qos=1, id=1)
    assert reader.receive() == [f"PUBLISH {'q1 #1 ' if qos else ''}t 'hi'"]


@statements("3.3.1-13")
@pytest.mark.parametrize("retain", [False, True])
@pytest.mark.parametrize("qos", [0, 1])
def test_retain_as_published_keeps_the_retain_flag(
    gateway: Gateway, writer: Client, version: int, retain: bool, qos: int
) -> None:
    reader = gateway.client("r")
    reader.subscribe("t", options(qos, as_published=True))
    writer.publish("t", retain=retain, qos=1, id=1)
    mark = ("q1 #1 " if qos else "") + ("retain " if retain else "")
    assert reader.receive() == [f"PUBLISH {mark}t 'hi'"]


@statements("3.3.1-9")
def test_a_retained_message_for_a_new_subscription_has_the_retain_flag(
    gateway: Gateway, writer: Client, version: int
) -> None:
    writer.publish("t", retain=True)
    for as_published in (False, True):
        reader = gateway.client("r")
        received = reader.subscribe("t", options(0, as_published=as_published))
        assert received == ["SUBACK #1 0", "PUBLISH retain t 'hi'"]


@statements("3.3.1-9")
def test_a_shared_subscription_gets_no_retained_messages(gateway: Gateway, writer: Client, version: int) -> None:
    writer.publish("t", retain=True)
    assert gateway.client("r").subscribe("$share/g/t", 1) == ["SUBACK #1 1"]  # 4.8.2


@statements("3.3.1-9", "3.3.1-6")
def test_a_retained_message_is_sent_after_its_publisher_is_gone(gateway: Gateway, writer: Client, version: int) -> None:
    """All its earlier subscribers are gone, too."""
    writer.publish("t", retain=True)
    writer.disconnect()
    gateway.advance(1_000_000)
    assert retained_for(gateway, version=version) == ["PUBLISH retain t 'hi'"]
