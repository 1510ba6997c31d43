"""Unacknowledged deliveries after a disconnect: requeueing, redelivery and packet identifiers."""

import pytest

from gateway.kernel.journal.records.topology import PolicyRecord
from gateway.kernel.messages.message import Value
from tests.protocols.mqtt.dialogue import Client, Gateway
from tests.protocols.mqtt.packets import message_expiry, options, receive_maximum

FOR_AN_HOUR = 3600


def persistent(gateway: Gateway, name: str = "app", window: int = 100) -> Client:
    return gateway.client(name, is_clean=False, expiry=FOR_AN_HOUR, properties=receive_maximum(window))


def published(gateway: Gateway, topic: str, *bodies: bytes, qos: int = 2, properties: bytes = b"") -> None:
    sensor = gateway.client("sensor")
    for body in bodies:
        sensor.publish(topic, body, qos=qos, id=1, properties=properties)
        sensor.pubrel(1)


def test_qos_2_deliveries_of_a_group_member_are_repeated_within_its_new_receive_maximum() -> None:
    gateway = Gateway()
    app = persistent(gateway)
    app.subscribe("$share/g/t", 2)
    published(gateway, "t", b"one", b"two", b"three")
    assert len(app.receive()) == 3
    app.lose()
    again = persistent(gateway, window=2)
    assert again.backlog == ["PUBLISH q2 #1 dup t 'one'", "PUBLISH q2 #2 dup t 'two'"]
    assert again.pubrec(2) == ["PUBREL #2"]
    assert again.pubcomp(2) == ["PUBLISH q2 #3 dup t 'three'"]
    assert again.pubrec(1) + again.pubcomp(1) + again.pubrec(3) + again.pubcomp(3) == ["PUBREL #1", "PUBREL #3"]
    published(gateway, "t", b"four")
    assert [line.split()[-1] for line in again.receive()] == ["'four'"]


def test_qos_2_deliveries_of_an_absent_member_do_not_go_to_other_members() -> None:
    gateway = Gateway()
    first, second = persistent(gateway, "first"), persistent(gateway, "second")
    first.subscribe("$share/g/t", 2)
    published(gateway, "t", b"one")
    assert first.receive() == ["PUBLISH q2 #1 t 'one'"]
    second.subscribe("$share/g/t", 2)
    first.lose()
    assert second.receive() == []
    assert persistent(gateway, "first").backlog == ["PUBLISH q2 #1 dup t 'one'"]


def test_qos_1_deliveries_of_an_absent_member_go_to_another_member() -> None:
    gateway = Gateway()
    first, second = persistent(gateway, "first"), persistent(gateway, "second")
    first.subscribe("$share/g/t", 1)
    published(gateway, "t", b"one", qos=1)
    assert first.receive() == ["PUBLISH q1 #1 t 'one'"]
    second.subscribe("$share/g/t", 1)
    first.lose()
    assert [line.split()[-1] for line in second.receive()] == ["'one'"]


def test_the_identifier_of_a_dropped_message_is_released() -> None:
    """The client may still hold it, and would mistake a new message with the same identifier for the old one."""
    gateway = Gateway()
    app = persistent(gateway)
    app.subscribe("t", 2)
    published(gateway, "t", b"one")
    assert app.receive() == ["PUBLISH q2 #1 t 'one'"]
    app.lose()
    gateway.vhost.queue("mqtt-subscription-appqos1").drops.purge()
    started = gateway.crashed()
    started.vhost.queue("mqtt-subscription-appqos1").drops.purge()
    again = persistent(started)
    assert again.backlog == ["PUBREL #1"]
    published(started, "t", b"two")
    assert again.receive() == ["PUBLISH q2 #2 t 'two'"]
    again.pubcomp(1)
    assert not started.vhost.sessions.get("app").qos2_state.releasing  # type: ignore[union-attr]


def test_the_identifier_of_a_dropped_message_before_others_is_released() -> None:
    gateway = Gateway()
    app = persistent(gateway, window=1)
    app.subscribe("t", 2)
    published(gateway, "t", b"one", b"two", b"three")
    assert app.receive() == ["PUBLISH q2 #1 t 'one'"]
    app.lose()
    queue = gateway.vhost.queue("mqtt-subscription-appqos1")
    entry = queue.take()
    assert entry is not None
    queue.accept(entry)
    assert persistent(gateway, window=1).backlog == ["PUBREL #1", "PUBLISH q2 #2 t 'two'"]


def test_own_messages_that_match_two_filters_arrive_once_on_the_terms_of_the_filter_without_no_local() -> None:
    gateway = Gateway()
    app = gateway.client("app")
    app.subscribe("t", 0)
    app.subscribe("#", options(1, no_local=True), id=2)
    assert app.publish("t", b"mine", qos=1, id=5) == ["PUBLISH t 'mine'", "PUBACK #5"]
    gateway.client("other").publish("t", b"other", qos=1, id=5)
    assert app.receive() == ["PUBLISH q1 #1 t 'other'"]


def test_an_expired_message_frees_its_identifier() -> None:
    gateway = Gateway()
    app = persistent(gateway)
    app.subscribe("t", 1)
    app.lose()
    published(gateway, "t", b"fleeting", qos=1, properties=message_expiry(5))
    gateway.advance(6)
    published(gateway, "t", b"lasting", qos=1)
    assert persistent(gateway).backlog == ["PUBLISH q1 #1 t 'lasting'"]


@pytest.mark.parametrize("restarts", [False, True])
def test_an_unfinished_qos_2_delivery_does_not_expire(restarts: bool) -> None:
    """Also with a policy by which messages expire anywhere in the queue: the delivery is completed (MQTT-4.3.3-7)."""
    gateway = Gateway()
    definition: dict[str, Value] = {"expire-mode": "anywhere"}
    gateway.broker.put_policy(PolicyRecord("/", "p", False, "^mqtt-", "queues", 0, definition))
    app = persistent(gateway)
    app.subscribe("t", 2)
    app.lose()
    published(gateway, "t", b"under way", b"waiting", properties=message_expiry(5))
    app = persistent(gateway, window=1)
    assert app.backlog == ["PUBLISH q2 #1 t 'under way' MESSAGE_EXPIRY_INTERVAL=5"]
    app.lose()
    if restarts:
        gateway = gateway.crashed()
    gateway.advance(60)
    again = persistent(gateway)
    assert [line.split(" MESSAGE")[0] for line in again.backlog] == ["PUBLISH q2 #1 dup t 'under way'"]
