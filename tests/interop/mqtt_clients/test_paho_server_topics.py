"""paho-mqtt and the ``$SYS/broker`` topics."""

from collections.abc import Callable

import pytest
from paho.mqtt.enums import MQTTProtocolVersion

from tests.interop.mqtt_clients.paho_client import V5, Paho

NOT_AUTHORIZED = 0x87


@pytest.fixture
def one(paho: Callable[..., Paho], version: MQTTProtocolVersion, name: str) -> Paho:
    one = paho(version, name)
    one.connect()
    return one


def first_values(one: Paho, *topics: str) -> dict[str, str]:
    """Return the first value of each of these topics."""
    received: dict[str, str] = {}
    while len(received) < len(topics):
        message = one.next()
        if message.topic in topics:
            received.setdefault(message.topic, message.payload.decode())
    return received


def test_a_subscriber_gets_the_values_at_once(one: Paho) -> None:
    one.subscribe("$SYS/broker/#")
    version, uptime = "$SYS/broker/version", "$SYS/broker/uptime"
    values = first_values(
        one, version, uptime, "$SYS/broker/clients/connected", "$SYS/broker/load/messages/received/1min"
    )
    assert " version " in values[version]
    assert values[uptime].endswith(" seconds")


def test_a_client_is_counted(one: Paho) -> None:
    one.subscribe("$SYS/broker/clients/connected")
    counts = (int(one.next().payload) for _ in range(10))  # the first may be from before it connected
    assert any(count >= 1 for count in counts)


def test_changed_values_are_sent_again(one: Paho) -> None:
    one.subscribe("$SYS/broker/uptime")
    first, second = one.next(), one.next()
    assert (first.retain, second.retain) == (True, False)
    assert int(first.payload.split()[0]) < int(second.payload.split()[0])


def test_a_subscriber_to_all_topics_gets_no_sys_topics(one: Paho) -> None:
    one.subscribe("#", qos=1)
    one.subscribe("$SYS/broker/uptime")
    received = [one.next().topic]
    while received.count("$SYS/broker/uptime") < 3:
        received.append(one.next().topic)
    assert {topic for topic in received if topic.startswith("$SYS")} == {"$SYS/broker/uptime"}


def test_clients_cannot_publish_to_sys_topics(one: Paho, version: MQTTProtocolVersion) -> None:
    one.start_publish("$SYS/broker/uptime", b"for ever", qos=0, retain=True)
    reason = one.wait_for_the_end()
    assert version != V5 or reason.value == NOT_AUTHORIZED
