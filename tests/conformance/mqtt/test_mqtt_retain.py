"""Retained messages: kept, replaced, cleared, and sent to whom asks (3.3.1.3, 3.8.3.1)."""

import pytest

from tests.conformance.mqtt.tables import statements
from tests.protocols.mqtt.dialogue import Client, Gateway
from tests.protocols.mqtt.packets import options, response_topic, user_property


@pytest.fixture
def writer(gateway: Gateway) -> Client:
    return gateway.client("writer")


def found(gateway: Gateway, filter: str = "t", version: int = 5, qos: int = 2) -> list[str]:
    """What somebody new is sent for a filter."""
    suback, *heard = gateway.client("late", version).subscribe(filter, qos)
    assert suback == f"SUBACK #1 {qos}"
    return heard


@statements("3.3.1-5", "3.3.1-5 3.3.1-8")
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_retained_message_is_kept_with_its_qos(gateway: Gateway, writer: Client, version: int, qos: int) -> None:
    writer.publish("t", qos=qos, id=qos, retain=True)
    mark = f"q{qos} #1 " if qos else ""
    assert found(gateway, version=version) == [f"PUBLISH {mark}retain t 'hi'"]


@statements("3.3.1-5", "3.3.1-7")
@pytest.mark.parametrize("qos", [0, 1])
def test_a_retained_message_replaces_the_one_before(gateway: Gateway, writer: Client, version: int, qos: int) -> None:
    writer.publish("t", b"one", qos=1, id=1, retain=True)
    writer.publish("t", b"two", qos=qos, id=2, retain=True)
    mark = f"q{qos} #1 " if qos else ""
    assert found(gateway, version=version) == [f"PUBLISH {mark}retain t 'two'"]


@statements("3.3.1-5", "3.3.1-5")
def test_a_retained_message_survives_the_broker(gateway: Gateway, writer: Client, version: int) -> None:
    properties = user_property("a", "b") + response_topic("r")
    writer.publish("t", retain=True, qos=1, id=1, properties=properties)
    [line] = found(gateway.crashed(), version=version)
    told = " USER_PROPERTY=('a', 'b') RESPONSE_TOPIC='r'" if version == 5 else ""
    assert line == f"PUBLISH q1 #1 retain t 'hi'{told}"


@statements("3.3.1-6 3.3.1-7", "3.3.1-10 3.3.1-11")
def test_an_empty_retained_message_clears(gateway: Gateway, writer: Client, version: int) -> None:
    reader = gateway.client("r", version)
    reader.subscribe("t", options(0, as_published=version == 5))
    writer.publish("t", retain=True)
    writer.publish("t", b"", retain=True)
    mark = "retain " if version == 5 else ""
    assert reader.hear() == [f"PUBLISH {mark}t 'hi'", f"PUBLISH {mark}t ''"]  # processed as any other
    assert found(gateway, version=version) == []
    assert found(gateway.crashed(), version=version) == []


@statements("3.3.1-8", "3.3.1-12")
@pytest.mark.parametrize("payload", [b"new", b""])
def test_what_is_not_retained_changes_nothing(gateway: Gateway, writer: Client, version: int, payload: bytes) -> None:
    writer.publish("t", b"old", retain=True)
    writer.publish("t", payload)
    writer.publish("other", payload)
    assert found(gateway, "#", version) == ["PUBLISH retain t 'old'"]


@statements("3.3.1-9", "3.3.1-6 3.3.1-8")
def test_a_subscription_brings_all_that_is_retained_for_it(gateway: Gateway, writer: Client, version: int) -> None:
    for topic in ("a", "a/b", "a/b/c", "a/x/c", "b", "$a/b", "a.b", "/"):
        writer.publish(topic, topic.encode(), retain=True)
    expected = {
        "a/+/c": ["a/b/c", "a/x/c"], "a/#": ["a", "a/b", "a/b/c", "a/x/c"], "+": ["a", "a.b", "b"], "+/+": ["/", "a/b"],
        "#": ["/", "a", "a.b", "a/b", "a/b/c", "a/x/c", "b"], "$a/#": ["$a/b"], "a.b": ["a.b"], "c": [],
    }  # fmt: skip
    for filter, topics in expected.items():
        assert sorted(found(gateway, filter, version)) == [f"PUBLISH retain {topic} '{topic}'" for topic in topics]


@statements("3.3.1-10")
def test_retain_handling_1_brings_them_to_new_subscriptions_alone(
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
def test_retain_handling_2_brings_none(gateway: Gateway, writer: Client, version: int) -> None:
    writer.publish("t", retain=True)
    assert gateway.client("r").subscribe("t", options(1, retain_handling=2)) == ["SUBACK #1 1"]


@statements("3.3.1-9 3.8.4-4", "3.8.4-3")
def test_subscribing_again_brings_them_again(gateway: Gateway, writer: Client, version: int) -> None:
    writer.publish("t", retain=True)
    reader = gateway.client("r", version)
    for _ in range(2):
        assert reader.subscribe("t") == ["SUBACK #1 0", "PUBLISH retain t 'hi'"]


@statements("3.3.1-12", "3.3.1-9")
@pytest.mark.parametrize("retain", [False, True])
@pytest.mark.parametrize("qos", [0, 1])
def test_a_message_that_comes_by_itself_does_not_say_that_it_is_retained(
    gateway: Gateway, writer: Client, version: int, retain: bool, qos: int
) -> None:
    reader = gateway.client("r", version)
    reader.subscribe("t", qos)
    writer.publish("t", retain=retain, qos=1, id=1)
    assert reader.hear() == [f"PUBLISH {'q1 #1 ' if qos else ''}t 'hi'"]


@statements("3.3.1-13")
@pytest.mark.parametrize("retain", [False, True])
@pytest.mark.parametrize("qos", [0, 1])
def test_unless_it_is_to_be_told_as_published(
    gateway: Gateway, writer: Client, version: int, retain: bool, qos: int
) -> None:
    reader = gateway.client("r")
    reader.subscribe("t", options(qos, as_published=True))
    writer.publish("t", retain=retain, qos=1, id=1)
    mark = ("q1 #1 " if qos else "") + ("retain " if retain else "")
    assert reader.hear() == [f"PUBLISH {mark}t 'hi'"]


@statements("3.3.1-9")
def test_a_retained_message_says_so_whatever_is_asked(gateway: Gateway, writer: Client, version: int) -> None:
    writer.publish("t", retain=True)
    for as_published in (False, True):
        reader = gateway.client("r")
        heard = reader.subscribe("t", options(0, as_published=as_published))
        assert heard == ["SUBACK #1 0", "PUBLISH retain t 'hi'"]


@statements("3.3.1-9")
def test_a_shared_subscription_brings_none(gateway: Gateway, writer: Client, version: int) -> None:
    writer.publish("t", retain=True)
    assert gateway.client("r").subscribe("$share/g/t", 1) == ["SUBACK #1 1"]  # 4.8.2


@statements("3.3.1-9", "3.3.1-6")
def test_what_is_retained_comes_though_nobody_published_since(gateway: Gateway, writer: Client, version: int) -> None:
    """Its publisher is gone, and so is everybody who heard it."""
    writer.publish("t", retain=True)
    writer.disconnect()
    gateway.advance(1_000_000)
    assert found(gateway, version=version) == ["PUBLISH retain t 'hi'"]
