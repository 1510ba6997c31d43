"""MQTT state after a kill: sessions, subscriptions, retained messages, delayed wills."""

import re
import time
from typing import Final

import pytest

from tests.durability.mqtt_link import FOR_AN_HOUR, SocketLink
from tests.protocols.mqtt.packets import (
    Will,
    message_expiry,
    options,
    session_expiry,
    subscription_identifier,
    user_property,
    will_delay,
)
from tests.running import Gateway

#: The delay of a will, longer than a start takes, in seconds.
DELAY_S: Final = 10


@pytest.fixture
def running(gateway: Gateway) -> Gateway:
    return gateway.start()


def open_session(gateway: Gateway, name: str, *, properties: bytes = FOR_AN_HOUR, is_clean: bool = False) -> SocketLink:
    link = SocketLink(gateway.addresses["mqtt"])
    link.send(link.write.connect(name, is_clean=is_clean, properties=properties))
    assert link.receive_connack().startswith("CONNACK")
    return link


def publish(gateway: Gateway, topic: str, body: bytes, *, retain: bool = False, properties: bytes = b"") -> None:
    """Publish with QoS 1, and wait until it is durable."""
    link = open_session(gateway, "publisher", properties=b"", is_clean=True)
    link.send(link.write.publish(topic, body, qos=1, id=1, retain=retain, properties=properties))
    assert link.receive_one().startswith("PUBACK #1")
    link.close()


def test_subscriptions_survive_with_all_their_options(running: Gateway) -> None:
    app = open_session(running, "app")
    subscriptions = [("a/+", options(1, as_published=True)), ("b", options(0, no_local=True)), ("c/#", 2)]
    for packet_id, (filter, requested) in enumerate(subscriptions, 1):
        app.request(
            app.write.subscribe((filter, requested), id=packet_id, properties=subscription_identifier(packet_id * 100))
        )
    app.request(app.write.unsubscribe("c/#"))
    running.restart()
    app = open_session(running, "app")
    assert app.present
    publish(running, "a/1", b"kept", retain=True)
    assert app.receive_one() == "PUBLISH q1 #1 retain a/1 'kept' SUBSCRIPTION_IDENTIFIER=100"
    app.send(app.write.puback(1), app.write.publish("b", b"own"), app.write.publish("a/2", b"own"))
    publish(running, "b", b"other")
    publish(running, "c/1", b"unsubscribed")
    received = app.receive_answers()
    assert sorted(received) == [
        "PUBLISH a/2 'own' SUBSCRIPTION_IDENTIFIER=100",
        "PUBLISH b 'other' SUBSCRIPTION_IDENTIFIER=200",
    ]


def test_waiting_messages_survive_a_kill_and_their_expiry_continues(running: Gateway) -> None:
    app = open_session(running, "app")
    app.request(app.write.subscribe(("t", 1)))
    app.close()
    publish(running, "t", b"fleeting", properties=message_expiry(1))
    publish(running, "t", b"lasting", properties=message_expiry(100) + user_property("a", "b"))
    time.sleep(1.0)  # the first message expires by the broker's clock
    running.restart()
    (received,) = open_session(running, "app").receive_answers()
    found = re.fullmatch(r"PUBLISH .* t 'lasting' MESSAGE_EXPIRY_INTERVAL=(\d+) USER_PROPERTY=\('a', 'b'\)", received)
    assert found is not None, received
    assert 90 <= int(found[1]) <= 99


def test_a_session_that_expired_during_downtime_is_deleted(running: Gateway) -> None:
    app = open_session(running, "app", properties=session_expiry(1))
    app.request(app.write.subscribe(("t", 1)))
    app.close()
    publish(running, "t", b"hi")
    running.kill()
    time.sleep(1.0)  # the session expires while no broker runs
    running.start()
    assert not open_session(running, "app").present


def test_retained_messages_survive_and_cleared_ones_do_not(running: Gateway) -> None:
    publish(running, "a/1", b"one", retain=True)
    publish(running, "a/2", b"two", retain=True)
    publish(running, "a/3", b"three", retain=True)
    publish(running, "a/2", b"", retain=True)
    publish(running, "a/3", b"last", retain=True)
    running.restart()
    app = open_session(running, "app")
    app.send(app.write.subscribe(("a/+", 0)))
    assert sorted(app.receive_answers()) == ["PUBLISH retain a/1 'one'", "PUBLISH retain a/3 'last'", "SUBACK #1 0"]


def test_a_delayed_will_is_published_after_a_restart(running: Gateway) -> None:
    listener = open_session(running, "listener")
    listener.request(listener.write.subscribe(("last/#", 1)))
    listener.close()
    for name in ("absent", "back"):
        will = Will(f"last/{name}", name.encode(), 1, properties=will_delay(DELAY_S))
        sensor = SocketLink(running.addresses["mqtt"])
        sensor.send(sensor.write.connect(name, properties=FOR_AN_HOUR, will=will))
        assert sensor.receive_connack() == "CONNACK"
        sensor.close()
    died_at = time.monotonic()
    publish(running, "the wills are durable when this is answered", b"", retain=True)
    open_session(running, "listener").request(listener.write.subscribe(("last/#", 1)))
    running.restart()
    listener = open_session(running, "listener")
    sensor = open_session(running, "back")
    assert sensor.present
    assert listener.receive_one() == "PUBLISH q1 #1 last/absent 'absent'"
    assert time.monotonic() - died_at >= DELAY_S - 0.1
    assert listener.receive_answers() == []


def test_a_shared_subscription_survives_with_its_members(running: Gateway) -> None:
    for name in ("one", "two"):
        member = open_session(running, name)
        member.request(member.write.subscribe(("$share/g/t", 2)))
        member.close()
    publish(running, "t", b"hi")
    running.restart()
    first = open_session(running, "one")
    assert first.receive_one() == "PUBLISH q1 #1 dup t 'hi'"  # it may have been sent to a member before
    first.send(first.write.puback(1))
    assert first.receive_answers() == []
    assert open_session(running, "two").receive_answers() == []
