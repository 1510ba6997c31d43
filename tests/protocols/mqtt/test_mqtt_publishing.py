"""Publishes of clients: the order of acknowledgements, refusals, and caches."""

import pytest

from gateway.kernel.journal.records.access import PermissionRecord
from tests.protocols.mqtt.dialogue import Client, Gateway
from tests.protocols.mqtt.packets import message_expiry, topic_alias


@pytest.fixture
def gateway() -> Gateway:
    """Return a broker with a queue ``full`` that refuses all messages, and a durable queue ``safe``."""
    gateway = Gateway(disconnect_on_unauthorized=False)
    vhost = gateway.vhost
    limits = {"x-max-length": 0, "x-overflow": "reject-publish"}
    for name, arguments in (("full", limits), ("safe", {})):
        queue = vhost.declare_queue(name, is_durable=True, arguments=arguments)
        vhost.bind(vhost.exchange("amq.topic"), queue, name)
    gateway.settle()
    return gateway


@pytest.fixture
def sensor(gateway: Gateway) -> Client:
    return gateway.client("sensor")


def test_acknowledgements_keep_the_order_of_their_publishes_whatever_their_reasons(
    gateway: Gateway, sensor: Client
) -> None:
    write = sensor.write
    packets = [
        write.publish("safe", qos=1, id=1),
        write.publish("unrouted", qos=1, id=2),
        write.publish("full", qos=1, id=3),
        write.publish("safe", qos=2, id=4),
        write.publish("full", qos=2, id=5),
        write.publish("unrouted", qos=2, id=6),
        write.publish("safe", b"\xff", qos=1, id=7, properties=b"\x01\x01"),
        write.publish("$SYS/broker", qos=1, id=8),
        write.publish("safe", qos=1, id=9),
    ]
    assert sensor.request(*packets) == [
        "PUBACK #1",
        "PUBACK #2 NO_MATCHING_SUBSCRIBERS",
        "PUBACK #3 QUOTA_EXCEEDED",
        "PUBREC #4",
        "PUBREC #5 QUOTA_EXCEEDED",
        "PUBREC #6 NO_MATCHING_SUBSCRIBERS",
        "PUBACK #7 PAYLOAD_FORMAT_INVALID",
        "PUBACK #8 NOT_AUTHORIZED",
        "PUBACK #9",
    ]


def test_a_refused_publish_of_3_x_is_not_acknowledged_and_may_be_resent(gateway: Gateway) -> None:
    sensor = gateway.client("sensor", 4)
    assert sensor.publish("full", qos=1, id=1) == []
    assert sensor.publish("full", qos=2, id=2) == []
    gateway.vhost.delete_queue(gateway.vhost.queue("full"))
    assert sensor.publish("full", qos=1, id=1, dup=True) == ["PUBACK #1"]
    assert sensor.publish("full", qos=2, id=2, dup=True) == ["PUBREC #2"]


def test_no_acknowledgement_overtakes_one_that_waits_for_the_disk(gateway: Gateway, sensor: Client) -> None:
    gateway.client("app").subscribe("t")
    write = sensor.write
    sensor.machine.receive(write.publish("safe", qos=1, id=1) + write.publish("t", qos=1, id=2))
    assert sensor.receive_now() == []
    sensor.machine.receive(write.publish("t", qos=1, id=3))
    assert sensor.receive_now() == []
    assert sensor.receive() == ["PUBACK #1", "PUBACK #2", "PUBACK #3"]


def test_a_closed_connection_gets_no_acknowledgement(gateway: Gateway, sensor: Client) -> None:
    sensor.machine.receive(sensor.write.publish("safe", qos=1, id=1))
    sensor.lose()
    assert sensor.receive() == []
    assert gateway.vhost.queue("safe").ready.length == 1


def test_the_cache_of_topics_is_invalidated_when_permissions_change(gateway: Gateway, sensor: Client) -> None:
    assert sensor.publish("safe", qos=1, id=1) == ["PUBACK #1"]
    gateway.broker.directory.put_permission(PermissionRecord("/", "guest", ".*", "^$", ".*"))
    assert sensor.publish("safe", qos=1, id=2) == ["PUBACK #2 NOT_AUTHORIZED"]
    gateway.broker.directory.put_permission(PermissionRecord("/", "guest", ".*", ".*", ".*"))
    assert sensor.publish("safe", qos=1, id=3) == ["PUBACK #3"]


def test_the_expiry_of_a_message_starts_with_its_own_arrival(gateway: Gateway) -> None:
    app = gateway.client("app", is_clean=False, expiry=100)
    app.subscribe("t", 1)
    app.lose()
    sensor = gateway.client("sensor")
    for packet_id in (1, 2):
        sensor.publish("t", qos=1, id=packet_id, properties=message_expiry(10))
        gateway.advance(4)
    again = gateway.client("app", is_clean=False, expiry=100)
    assert [line.split("=")[-1] for line in again.backlog] == ["2", "6"]


def test_an_alias_is_valid_on_its_own_connection_only(gateway: Gateway) -> None:
    app = gateway.client("app")
    app.subscribe("t")
    sensor = gateway.client("sensor")
    sensor.publish("t", b"one", properties=topic_alias(3))
    sensor.publish("", b"two", properties=topic_alias(3))
    assert app.receive() == ["PUBLISH t 'one'", "PUBLISH t 'two'"]
    again = gateway.client("sensor")
    assert again.publish("", b"three", properties=topic_alias(3)) == ["DISCONNECT PROTOCOL_ERROR", "closed"]


def test_the_caches_of_topics_and_properties_are_bounded(gateway: Gateway, sensor: Client) -> None:
    for number in range(3000):
        sensor.machine.receive(sensor.write.publish(f"t/{number}", properties=b"\x03" + b"\0\4" + b"%04d" % number))
    assert sensor.machine.conversation is not None
    publishing = sensor.machine.conversation.publishing
    assert len(publishing._targets) <= 1024
    assert len(publishing._headers) <= 1024
