"""Interceptors that declare routing keys: they see the messages with these keys, and no others."""

import pytest

from gateway.api import Decision, Diversion, Interceptor, Message, Origin
from tests.protocols.amqp.frames import publish
from tests.protocols.mqtt.packets import Will
from tests.scenarios.all_protocols_broker import AllProtocolsBroker, all_of, published, queue


class Keyed(Interceptor):
    """Marks the messages with some routing keys."""

    def __init__(self, *routing_keys: str) -> None:
        self.routing_keys = routing_keys
        self.seen: list[Origin] = []

    def on_publish(self, message: Message, origin: Origin) -> Decision:
        self.seen.append(origin)
        return message.edited(body=message.body + b"!")


class Taking(Keyed):
    """Takes the messages, so that they reach no queue."""

    def on_publish(self, message: Message, origin: Origin) -> Decision:
        self.seen.append(origin)
        return Diversion("", "")


@pytest.fixture
def gateway() -> AllProtocolsBroker:
    gateway = AllProtocolsBroker()
    gateway.peer().send(*queue("q", "t.#")).receive()
    return gateway


def use(gateway: AllProtocolsBroker, *interceptors: Interceptor) -> None:
    gateway.vhost.interception.apply(interceptors)
    gateway.settle()


def test_amqp_publishes_with_the_declared_key_are_seen(gateway: AllProtocolsBroker) -> None:
    keyed = Keyed("t.1")
    use(gateway, keyed)
    peer = gateway.peer()
    for _ in range(3):  # a publish that repeats the last one takes another way
        for key in ("t.1", "t.2", "t.2", "t.2", "t.1"):
            peer.send(published(key, b"x")).receive()
    assert all_of(gateway.peer(), "q") == [b"x!", b"x", b"x", b"x", b"x!"] * 3
    assert len(keyed.seen) == 6


def test_mqtt_topics_are_compared_by_the_keys_that_they_become(gateway: AllProtocolsBroker) -> None:
    use(gateway, Keyed("t.1"))
    sensor = gateway.client("sensor")
    for topic in ("t/1", "t/2", "t/1", "t/1"):
        sensor.publish(topic, b"x")
    assert all_of(gateway.peer(), "q") == [b"x!", b"x", b"x!", b"x!"]


def test_stomp_destinations_are_compared_by_their_keys(gateway: AllProtocolsBroker) -> None:
    use(gateway, Keyed("t.1"))
    shop = gateway.stomp()
    for name in ("t.1", "t.2", "t.2", "t.1"):
        shop.publish(f"/topic/{name}", b"x")
    assert all_of(gateway.peer(), "q") == [b"x!", b"x", b"x", b"x!"]


def test_wills_are_compared_too(gateway: AllProtocolsBroker) -> None:
    use(gateway, Keyed("t.1"))
    for topic in ("t/1", "t/2"):
        gateway.client(f"device {topic}", will=Will(topic, b"gone")).lose()
    assert all_of(gateway.peer(), "q") == [b"gone!", b"gone"]


def test_declared_exchanges_and_keys_must_both_match(gateway: AllProtocolsBroker) -> None:
    keyed = Keyed("t.1")
    keyed.exchanges = {"amq.topic"}
    use(gateway, keyed, Keyed("q"))
    peer = gateway.peer()
    peer.send(published("t.1", b"a"), publish("", "q", b"b"), published("t.3", b"c")).receive()
    assert all_of(gateway.peer(), "q") == [b"a!", b"b!", b"c"]


def test_a_message_that_is_diverted_to_the_empty_name_is_confirmed_and_neither_routed_nor_retained(
    gateway: AllProtocolsBroker,
) -> None:
    use(gateway, Taking("t.1"))
    assert gateway.client("sensor").publish("t/1", b"x", qos=1, id=7, retain=True) == [
        "PUBACK #7 NO_MATCHING_SUBSCRIBERS"
    ]
    assert all_of(gateway.peer(), "q") == []
    assert len(gateway.vhost.retained) == 0
