"""Acknowledgements hold after a crash: none is sent before its effect is durable.

In each test the store commits when told. An answer that arrives without a commit may be undone by a crash, so the
client must not depend on it.
"""

from typing import Final

import pytest

from gateway.testing import FakeClock
from gateway_memory import MemoryStore
from tests.protocols.mqtt.dialogue import Client, Gateway
from tests.protocols.mqtt.packets import Will, receive_maximum, session_expiry, will_delay

FOR_A_DAY: Final = 86_400


@pytest.fixture
def gateway() -> Gateway:
    return Gateway()


def durable(gateway: Gateway, name: str, version: int = 5, *, is_clean: bool = False, **options: object) -> Client:
    """Return a client with a persistent session."""
    expiry = FOR_A_DAY if version == 5 else None
    return gateway.client(name, version, is_clean=is_clean, expiry=expiry, **options)


def send(client: Client, packet: bytes) -> list[str]:
    """Send a packet; return what is received by the end of the turn, before anything is durable."""
    client.machine.receive(packet)
    return client.receive_now()


def lose(client: Client) -> str:
    """Lose the transport before anything is durable. Return the client's identifier."""
    name = client.machine.client_id
    client.gateway.broker.connections.remove(client)
    client.machine.lost()
    client.gateway.end_turn()
    return name


def reconnect(client: Client, name: str) -> tuple[Client, list[str]]:
    """Reconnect the client before anything more is durable; return what it receives after the CONNACK."""
    version = client.write.version
    again = client.gateway.new_client(version)
    options = b"\x11" + FOR_A_DAY.to_bytes(4, "big") if version == 5 else b""
    answers = send(again, again.write.connect(name, is_clean=False, properties=options))
    assert answers[0].startswith("CONNACK present")
    return again, answers[1:]


# ---- From the client -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("qos", "answer"), [(1, "PUBACK"), (2, "PUBREC")])
@pytest.mark.parametrize("version", [4, 5])
def test_a_publish_is_acknowledged_once_it_is_durable_in_a_persistent_session(
    gateway: Gateway, version: int, qos: int, answer: str
) -> None:
    durable(gateway, "app").subscribe("t", 2)
    sensor = gateway.client("sensor", version)
    assert send(sensor, sensor.write.publish("t", qos=qos, id=7)) == []
    assert gateway.crashed().vhost.queue("mqtt-subscription-appqos1").ready.length == 0
    assert sensor.receive() == [f"{answer} #7"]
    assert gateway.crashed().vhost.queue("mqtt-subscription-appqos1").ready.length == 1


def test_a_publish_that_is_not_stored_is_acknowledged_in_its_turn(gateway: Gateway) -> None:
    gateway.client("app").subscribe("t", 1)
    sensor = gateway.client("sensor")
    assert send(sensor, sensor.write.publish("t", qos=1, id=7)) == ["PUBACK #7"]


def test_a_retained_publish_is_acknowledged_once_it_is_durable(gateway: Gateway) -> None:
    sensor = gateway.client("sensor")
    assert send(sensor, sensor.write.publish("t", qos=1, id=7, retain=True)) == []
    assert sensor.receive() == ["PUBACK #7 NO_MATCHING_SUBSCRIBERS"]
    assert len(gateway.crashed().vhost.retained) == 1


def test_a_packet_identifier_is_durable_before_pubrec_is_sent(gateway: Gateway) -> None:
    sensor = durable(gateway, "sensor")
    assert send(sensor, sensor.write.publish("t", qos=2, id=7)) == []
    assert sensor.receive() == ["PUBREC #7 NO_MATCHING_SUBSCRIBERS"]
    assert durable(gateway.crashed(), "sensor").publish("t", qos=2, id=7, dup=True) == ["PUBREC #7"]


def test_a_resent_publish_is_acknowledged_no_earlier_than_the_first(gateway: Gateway) -> None:
    sensor = durable(gateway, "sensor")
    assert send(sensor, sensor.write.publish("t", qos=2, id=7)) == []
    again, answers = reconnect(sensor, lose(sensor))
    assert answers == []
    assert send(again, again.write.publish("t", qos=2, id=7, dup=True)) == []
    assert again.receive() == ["PUBREC #7"]


def test_the_release_of_an_identifier_is_durable_before_pubcomp_is_sent(gateway: Gateway) -> None:
    sensor = durable(gateway, "sensor")
    sensor.publish("t", qos=2, id=7)
    assert send(sensor, sensor.write.pubrel(7)) == []
    assert sensor.receive() == ["PUBCOMP #7"]


def test_a_repeated_pubrel_is_answered_no_earlier_than_the_first(gateway: Gateway) -> None:
    """Otherwise the client could reuse the identifier, and after a crash its next message would look like the last."""
    sensor = durable(gateway, "sensor")
    sensor.publish("t", qos=2, id=7)
    assert send(sensor, sensor.write.pubrel(7)) == []
    again, _ = reconnect(sensor, lose(sensor))
    assert send(again, again.write.pubrel(7)) == []
    assert again.receive() == ["PUBCOMP #7 PACKET_IDENTIFIER_NOT_FOUND"]


def test_a_session_that_is_not_persistent_does_not_wait_for_the_disk(gateway: Gateway) -> None:
    sensor = gateway.client("sensor")
    assert send(sensor, sensor.write.publish("t", qos=2, id=7)) == ["PUBREC #7 NO_MATCHING_SUBSCRIBERS"]
    assert send(sensor, sensor.write.pubrel(7)) == ["PUBCOMP #7"]


# ---- To the client ---------------------------------------------------------------------------------------------------


@pytest.fixture
def app(gateway: Gateway) -> Client:
    client = durable(gateway, "app")
    client.subscribe("t", 2)
    return client


def published(gateway: Gateway, body: bytes = b"hi") -> None:
    """Publish a QoS 2 message that is not durable yet."""
    sensor = gateway.client(f"sensor-{len(gateway.broker.connections)}")
    sensor.machine.receive(sensor.write.publish("t", body, qos=2, id=1))
    gateway.end_turn()


def test_a_qos_2_message_is_sent_once_its_identifier_is_durable(gateway: Gateway, app: Client) -> None:
    published(gateway)
    assert app.receive_now() == []
    assert app.receive() == ["PUBLISH q2 #1 t 'hi'"]
    again = gateway.crashed().client("app", is_clean=False)
    assert again.backlog == ["PUBLISH q2 #1 dup t 'hi'"]


def test_pubrel_is_sent_once_it_is_durable_that_the_client_has_the_message(gateway: Gateway, app: Client) -> None:
    published(gateway)
    app.receive()
    assert send(app, app.write.pubrec(1)) == []
    assert app.receive() == ["PUBREL #1"]
    assert gateway.crashed().client("app", is_clean=False).backlog == ["PUBREL #1"]


def test_reconnecting_does_not_send_pubrel_earlier(gateway: Gateway, app: Client) -> None:
    """Otherwise the client would free an identifier under which a crash makes the broker resend the message."""
    published(gateway)
    app.receive()
    assert send(app, app.write.pubrec(1)) == []
    again, answers = reconnect(app, lose(app))
    assert answers == []
    assert send(again, again.write.pubrec(1)) == []
    assert again.receive() == ["PUBREL #1", "PUBREL #1"]


def test_reconnecting_does_not_send_a_message_of_a_group_earlier(gateway: Gateway) -> None:
    """Otherwise a crash would forget its identifier, and the next message under it would be taken for this one."""
    app = durable(gateway, "app")
    app.subscribe("$share/group/t", 2)
    sensor = gateway.client("sensor")
    sensor.machine.receive(sensor.write.publish("t", qos=2, id=1))
    assert app.receive_now() == []
    again, answers = reconnect(app, lose(app))
    assert answers == []
    assert again.receive() == ["PUBLISH q2 #1 dup t 'hi'"]


def test_messages_of_qos_0_and_1_do_not_wait_for_the_disk(gateway: Gateway, app: Client) -> None:
    app.subscribe("u", 1)
    sensor = gateway.client("sensor")
    sensor.machine.receive(sensor.write.publish("u", qos=1, id=1))
    assert app.receive_now() == ["PUBLISH q1 #1 u 'hi'"]


@pytest.mark.parametrize("version", [4, 5])
def test_a_subscription_is_acknowledged_once_it_is_durable(gateway: Gateway, version: int) -> None:
    app = durable(gateway, "app", version)
    assert send(app, app.write.subscribe(("t", 1), id=3)) == []
    assert app.receive() == ["SUBACK #3 1"]
    assert len(gateway.crashed().vhost.sessions.get("app").subscriptions) == 1  # type: ignore[union-attr]
    assert send(app, app.write.unsubscribe("t", id=4)) == []
    assert app.receive() == ["UNSUBACK #4 0" if version == 5 else "UNSUBACK #4"]


def test_later_packets_do_not_overtake_one_that_waits_for_the_disk(gateway: Gateway, app: Client) -> None:
    published(gateway, b"first")
    sensor = gateway.client("sensor")
    sensor.machine.receive(sensor.write.publish("t", b"second"))
    assert app.receive() == ["PUBLISH q2 #1 t 'first'", "PUBLISH t 'second'"]


# ---- A store that cannot write ---------------------------------------------------------------------------------------


def test_nothing_is_acknowledged_while_the_store_is_stalled(gateway: Gateway, app: Client) -> None:
    gateway.store.stall("the disk is full")
    sensor = durable(gateway, "sensor")
    assert sensor.publish("t", qos=1, id=1) == []
    assert sensor.publish("t", qos=2, id=2) == []
    assert app.receive() == ["PUBLISH q1 #1 t 'hi'"]
    gateway.store.resume()
    assert sensor.receive() == ["PUBACK #1", "PUBREC #2"]
    assert app.receive() == ["PUBLISH q2 #2 t 'hi'"]


@pytest.mark.parametrize(
    ("version", "answers"), [(5, ["PUBACK #1 QUOTA_EXCEEDED", "PUBREC #2 QUOTA_EXCEEDED"]), (4, [])]
)
def test_publishers_are_informed_when_the_store_fails(version: int, answers: list[str]) -> None:
    gateway = Gateway(store=MemoryStore(), clock=FakeClock())
    durable(gateway, "app").subscribe("t", 2)
    sensor = durable(gateway, "sensor", version)
    gateway.store.stall("the disk is full")
    sensor.publish("t", qos=1, id=1)
    sensor.publish("t", qos=2, id=2)
    gateway.store.fail("the disk is broken")
    assert sensor.receive() == answers


# ---- Several queues of one session -----------------------------------------------------------------------------------


def test_deliveries_of_a_group_do_not_discard_remembered_identifiers_of_the_session(gateway: Gateway) -> None:
    """A message that waits for credit keeps its identifier, regardless of the group's deliveries."""
    app = durable(gateway, "app", properties=receive_maximum(2))
    app.subscribe("t", 2)
    app.subscribe("$share/g/u", 2)
    sensor = gateway.client("sensor")
    sensor.publish("t", b"one", qos=2, id=1)
    sensor.publish("t", b"two", qos=2, id=2)
    assert app.receive() == ["PUBLISH q2 #1 t 'one'", "PUBLISH q2 #2 t 'two'"]
    app.lose()
    sensor.publish("u", b"three", qos=2, id=3)
    again = durable(gateway, "app", properties=receive_maximum(1))
    answers = [*again.backlog]
    assert answers == ["PUBLISH q2 #1 dup t 'one'"]
    for _ in range(3):
        for packet_id in (1, 3, 2):
            answers += again.request(again.write.pubrec(packet_id), again.write.pubcomp(packet_id))
    assert [line for line in answers if "two" in line] == ["PUBLISH q2 #2 dup t 'two'"]
    assert [line for line in answers if "three" in line] == ["PUBLISH q2 #3 u 'three'"]


@pytest.mark.parametrize("version", [4, 5])
def test_a_queued_qos_0_message_is_sent_once_its_removal_is_durable(gateway: Gateway, version: int) -> None:
    app = durable(gateway, "app", version)
    app.subscribe("t", 0)
    app.lose()
    gateway.client("sensor").publish("t", b"kept", qos=1, id=1)
    gateway.settle()
    assert gateway.crashed().vhost.queue("mqtt-subscription-appqos0").ready.length == 1
    again = gateway.new_client(version)
    options = b"\x11" + FOR_A_DAY.to_bytes(4, "big") if version == 5 else b""
    answers = send(again, again.write.connect("app", is_clean=False, properties=options))
    assert [line.split()[0] for line in answers] == ["CONNACK"]
    assert again.receive() == ["PUBLISH t 'kept'"]
    assert gateway.crashed().vhost.queue("mqtt-subscription-appqos0").ready.length == 0


def test_a_queued_qos_0_message_for_a_slow_client_is_also_sent_once_its_removal_is_durable(gateway: Gateway) -> None:
    app = durable(gateway, "app")
    app.subscribe("t", 0)
    app.is_reading = False
    for number in range(15):
        gateway.client("sensor").publish("t", bytes(50_000), qos=1, id=number + 1)
    gateway.settle()
    waiting = gateway.crashed().vhost.queue("mqtt-subscription-appqos0").ready.length
    assert waiting > 0
    app.is_reading = True
    app.machine.outbox.is_congested = False
    app.machine.outbox.wake()
    sent = app.receive_now() + app.receive_now()
    assert len(sent) == 15 - waiting
    assert len(app.receive()) == waiting


def test_a_qos_0_message_for_a_ready_client_does_not_wait(gateway: Gateway) -> None:
    app = durable(gateway, "app")
    app.subscribe("t", 0)
    gateway.settle()
    sensor = gateway.client("sensor")
    sensor.machine.receive(sensor.write.publish("t", b"now", qos=1, id=1))
    assert app.receive_now() == ["PUBLISH t 'now'"]


# ---- Of what a CONNECT removes ---------------------------------------------------------------------------------------


def test_a_client_that_is_back_in_time_is_answered_once_its_will_is_durably_cancelled(gateway: Gateway) -> None:
    will = Will("gone", b"x", qos=1, properties=will_delay(600))
    durable(gateway, "app", will=will).lose()
    gateway.settle()
    again = gateway.new_client(5)
    assert send(again, again.write.connect("app", is_clean=False, properties=session_expiry(FOR_A_DAY))) == []
    assert len(gateway.crashed().vhost.wills) == 1
    assert [line.split()[:2] for line in again.receive()] == [["CONNACK", "present"]]
    assert len(gateway.crashed().vhost.wills) == 0


@pytest.mark.parametrize("expiry", [0, FOR_A_DAY])
def test_a_clean_start_is_answered_once_the_earlier_session_is_durably_gone(gateway: Gateway, expiry: int) -> None:
    durable(gateway, "app").subscribe("t", 1)
    again = gateway.new_client(5)
    assert send(again, again.write.connect("app", is_clean=True, properties=session_expiry(expiry))) == []
    assert "app" in [session.client_id for session in gateway.crashed().vhost.sessions]
    assert [line.split()[0] for line in again.receive()] == ["CONNACK"]
    sessions = [session for session in gateway.crashed().vhost.sessions if session.client_id == "app"]
    assert not any(session.subscriptions for session in sessions)


def test_a_session_that_is_resumed_is_answered_in_its_turn(gateway: Gateway) -> None:
    durable(gateway, "app").lose()
    gateway.settle()
    again = gateway.new_client(5)
    answers = send(again, again.write.connect("app", is_clean=False, properties=session_expiry(FOR_A_DAY)))
    assert [line.split()[:2] for line in answers] == [["CONNACK", "present"]]
