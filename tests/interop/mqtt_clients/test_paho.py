"""paho-mqtt in all three versions of the protocol: features common to all versions."""

import itertools
from collections.abc import Callable

import pytest
from paho.mqtt.enums import MQTTProtocolVersion

from tests.interop.mqtt_clients.mqtt_server import MqttServer
from tests.interop.mqtt_clients.paho_client import V5, Paho
from tests.interop.tcp_proxy import TcpProxy

Client = Callable[..., Paho]

SESSION_TAKEN_OVER = 0x8E


@pytest.fixture
def client(paho: Client, version: MQTTProtocolVersion, name: str) -> Client:
    """Create a client of the version, with the test's name for it as identifier."""
    return lambda who="one", **options: paho(version, f"{name}-{who}", **options)


@pytest.mark.parametrize(("published", "subscribed"), [*itertools.product(range(3), range(3))])
def test_a_message_is_delivered_with_the_lower_qos(client: Client, name: str, published: int, subscribed: int) -> None:
    one = client()
    one.connect()
    assert one.subscribe(name, qos=subscribed) == [subscribed]
    assert one.publish(name, b"hello", qos=published) == 0
    message = one.next()
    assert (message.topic, message.payload, message.qos) == (name, b"hello", min(published, subscribed))
    assert not message.retain
    assert not message.dup
    assert one.receives_nothing_more()


@pytest.mark.parametrize(
    ("filter", "topic", "matches"),
    [
        pytest.param("a/b", "a/b", True, id="itself"),
        pytest.param("a/+", "a/b", True, id="one level"),
        pytest.param("a/+", "a", False, id="one level, not none"),
        pytest.param("a/+", "a/", True, id="one level, an empty one"),
        pytest.param("a/+", "a/b/c", False, id="one level, not two"),
        pytest.param("+/b", "/b", True, id="an empty level"),
        pytest.param("a/#", "a", True, id="the parent"),
        pytest.param("a/#", "a/b/c", True, id="all below"),
        pytest.param("a/+/c", "a/b/c", True, id="one level in the middle"),
        pytest.param("+/+", "/", True, id="two empty levels"),
        pytest.param("A/b", "a/b", False, id="letter case is significant"),
        pytest.param("a.b", "a/b", False, id="a dot is not a separator"),
        pytest.param("a/+", "a/x.y", True, id="a dot in a level"),
        pytest.param("a/*", "a/b", False, id="a star is not a wildcard"),
        pytest.param("a/*", "a/*", True, id="a star matches itself"),
        pytest.param("räume/+/%", "räume/küche/%", True, id="any character"),
    ],
)
def test_filters_match_as_specified(client: Client, name: str, filter: str, topic: str, matches: bool) -> None:
    one = client()
    one.connect()
    one.subscribe(f"{name}/{filter}", qos=1)
    one.publish(f"{name}/{topic}", b"x", qos=1)
    if matches:
        assert one.next().topic == f"{name}/{topic}"
    assert one.receives_nothing_more()


def test_wildcards_do_not_match_topics_with_a_dollar(client: Client, name: str) -> None:
    one = client()
    one.connect()
    one.subscribe("+/" + name, qos=1)
    one.subscribe("$own/" + name, qos=1)
    one.publish("$own/" + name, b"asked for by name", qos=1)
    assert one.next().topic == "$own/" + name
    assert one.receives_nothing_more()


def test_an_unsubscribed_filter_receives_nothing(client: Client, name: str) -> None:
    one = client()
    one.connect()
    one.subscribe(name, qos=1)
    one.unsubscribe(name)
    one.publish(name, qos=1)
    assert one.receives_nothing_more()


# Retained messages


def test_a_retained_message_is_sent_to_later_subscribers(client: Client, name: str) -> None:
    one, two = client(), client("two")
    one.connect()
    one.subscribe(f"{name}/#", qos=1)
    one.publish(f"{name}/lamp", b"off", qos=1, retain=True)
    one.publish(f"{name}/lamp", b"on", qos=1, retain=True)
    one.publish(f"{name}/door", b"open", qos=1, retain=True)
    assert [one.next().retain for _ in range(3)] == [False, False, False]

    two.connect()
    two.subscribe(f"{name}/+", qos=1)
    kept = sorted((message.topic, message.payload, message.retain) for message in (two.next(), two.next()))
    assert kept == [(f"{name}/door", b"open", True), (f"{name}/lamp", b"on", True)]
    assert two.receives_nothing_more()


def test_an_empty_retained_message_deletes_the_retained_one(client: Client, name: str) -> None:
    one = client()
    one.connect()
    one.publish(name, b"kept", qos=1, retain=True)
    one.publish(name, b"", qos=1, retain=True)
    one.subscribe(name, qos=1)
    assert one.receives_nothing_more()


# Wills


def test_the_will_of_a_lost_client_is_published(client: Client, name: str) -> None:
    witness, mortal = client(), client("mortal")
    witness.connect()
    witness.subscribe(name, qos=2)
    mortal.client.will_set(name, b"gone", qos=2)
    mortal.connect()
    mortal.vanish()
    message = witness.next()
    assert (message.payload, message.qos, message.retain) == (b"gone", 2, False)


def test_a_retained_will_is_retained(client: Client, name: str) -> None:
    witness, mortal, late = client(), client("mortal"), client("late")
    witness.connect()
    witness.subscribe(name, qos=1)
    mortal.client.will_set(name, b"offline", qos=1, retain=True)
    mortal.connect()
    mortal.vanish()
    assert not witness.next().retain
    late.connect()
    late.subscribe(name, qos=1)
    message = late.next()
    assert (message.payload, message.retain) == (b"offline", True)


def test_disconnect_discards_the_will(client: Client, name: str) -> None:
    witness, mortal = client(), client("mortal")
    witness.connect()
    witness.subscribe(name, qos=1)
    mortal.client.will_set(name, b"gone", qos=1)
    mortal.connect()
    mortal.disconnect()
    assert witness.receives_nothing_more()


# Sessions


@pytest.mark.parametrize("qos", [1, 2])
def test_messages_wait_for_a_client_that_reconnects(client: Client, name: str, qos: int) -> None:
    sleeper, publisher = client("sleeper", keeps_session=True), client()
    assert not sleeper.connect().is_session_present
    sleeper.subscribe(f"{name}/+", qos=qos)
    sleeper.disconnect()
    publisher.connect()
    for number in range(20):
        publisher.publish(f"{name}/{number % 3}", b"%d" % number, qos=qos)

    back = client("sleeper", keeps_session=True)
    assert back.connect().is_session_present or back.client.protocol == 3  # 3.1 has no such flag
    assert back.payloads(20) == [b"%d" % number for number in range(20)]
    assert back.receives_nothing_more()


def test_a_clean_start_deletes_the_session(client: Client, name: str) -> None:
    sleeper, publisher = client("sleeper", keeps_session=True), client()
    sleeper.connect()
    sleeper.subscribe(name, qos=1)
    sleeper.vanish()
    publisher.connect()
    publisher.publish(name, b"lost", qos=1)

    fresh = client("sleeper")
    assert not fresh.connect().is_session_present
    publisher.publish(name, b"lost too", qos=1)
    assert fresh.receives_nothing_more()


def test_a_second_connection_of_a_client_takes_its_session_over(client: Client, name: str) -> None:
    first, second = client(keeps_session=True), client(keeps_session=True)
    first.connect()
    first.subscribe(name, qos=1)
    second.connect()
    reason = first.wait_for_the_end()
    if first.client.protocol == V5:
        assert reason.value == SESSION_TAKEN_OVER
    second.publish(name, b"for the second", qos=1)
    assert second.payloads(1) == [b"for the second"]


def test_unacknowledged_messages_are_resent_in_order(client: Client, name: str) -> None:
    forgetful, publisher = client("forgetful", keeps_session=True, acknowledges=False), client()
    forgetful.connect()
    forgetful.subscribe(name, qos=1)
    publisher.connect()
    for number in range(8):
        publisher.publish(name, b"%d" % number, qos=1)
    seen = [forgetful.next() for _ in range(8)]
    assert [message.dup for message in seen] == [False] * 8
    for message in seen[:3]:
        forgetful.client.ack(message.mid, 1)
    forgetful.publish(name + "/done", qos=1)  # the acknowledgements are before it
    forgetful.vanish()

    back = client("forgetful", keeps_session=True)
    back.connect()
    again = [back.next() for _ in range(5)]
    assert [message.payload for message in again] == [b"3", b"4", b"5", b"6", b"7"]
    assert [message.dup for message in again] == [True] * 5
    assert [message.mid for message in again] == [message.mid for message in seen[3:]]
    assert back.receives_nothing_more()


@pytest.mark.parametrize(("qos", "copies"), [pytest.param(1, 2, id="at least"), pytest.param(2, 1, id="exactly")])
def test_resent_publishes_after_lost_acknowledgements_are_deduplicated_with_qos_2(
    server: MqttServer, client: Client, name: str, qos: int, copies: int
) -> None:
    """paho resends unacknowledged messages after a reconnect."""
    witness, publisher = client(), client("publisher", keeps_session=True)
    witness.connect()
    witness.subscribe(name, qos=qos)
    sent = [b"%d" % number for number in range(20)]
    with TcpProxy(server.host, server.port) as line:
        publisher.connect(clean_start=True, port=line.port)
        line.loses_answers = True
        mids = [publisher.start_publish(name, payload, qos=qos) for payload in sent]
        assert witness.payloads(20) == sent
        line.cut()
        publisher.wait_for_the_end()
    publisher.connect(clean_start=False)
    publisher.wait_for_publishes(mids)
    publisher.publish(name, b"last", qos=qos)
    assert witness.payloads(20 * copies - 20 + 1) == sent * (copies - 1) + [b"last"]


def test_qos_2_deliveries_arrive_exactly_once_despite_lost_connections(client: Client, name: str) -> None:
    subscriber, publisher = client("subscriber", keeps_session=True), client()
    subscriber.connect(clean_start=True)
    subscriber.subscribe(name, qos=2)
    publisher.connect()
    received: list[bytes] = []
    for burst in range(6):
        for number in range(40):
            publisher.start_publish(name, b"%d" % (burst * 40 + number), qos=2)
        received += subscriber.payloads(7)
        subscriber.vanish()
        subscriber.connect(clean_start=False)
    received += subscriber.payloads(240 - len(received))
    assert received == [b"%d" % number for number in range(240)]
    assert subscriber.receives_nothing_more()


# Sizes and numbers


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_payload_of_a_mebibyte_is_delivered_unchanged(client: Client, name: str, qos: int) -> None:
    one = client()
    one.connect()
    one.subscribe(name, qos=qos)
    payload = bytes(range(256)) * 4096
    one.publish(name, payload, qos=qos)
    assert one.next().payload == payload


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_thousand_messages_are_delivered_in_order(client: Client, name: str, qos: int) -> None:
    one, two = client(), client("two")
    one.connect()
    one.subscribe(name, qos=qos)
    two.connect()
    mids = [two.start_publish(name, b"%d" % number, qos=qos) for number in range(1000)]
    assert one.payloads(1000) == [b"%d" % number for number in range(1000)]
    two.wait_for_publishes(mids)
