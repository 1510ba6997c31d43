"""What a client is told still holds after a crash: no answer leaves before what it promises is durable.

In each dialogue the store commits when told. What is heard without a commit may be forgotten by a crash, so it must not
be anything that the client builds on.
"""

from typing import Final

import pytest

from gateway.testing import FakeClock
from gateway_memory import MemoryStore
from tests.protocols.mqtt.dialogue import Client, Gateway
from tests.protocols.mqtt.packets import receive_maximum

FOR_A_DAY: Final = 86_400


@pytest.fixture
def gateway() -> Gateway:
    return Gateway()


def durable(gateway: Gateway, name: str, version: int = 5, *, is_clean: bool = False, **options: object) -> Client:
    """Return a client whose session outlives its connection."""
    expiry = FOR_A_DAY if version == 5 else None
    return gateway.client(name, version, is_clean=is_clean, expiry=expiry, **options)


def said(client: Client, packet: bytes) -> list[str]:
    """Say something; return what is heard at the end of the turn, nothing of it being durable."""
    client.machine.receive(packet)
    return client.hear_now()


def lost(client: Client) -> str:
    """The transport breaks, and nothing of that is durable yet. Return the client's identifier."""
    name = client.machine.opening.client_id
    client.gateway.broker.connections.remove(client)
    client.machine.lost()
    client.gateway.end_turn()
    return name


def back(client: Client, name: str) -> tuple[Client, list[str]]:
    """The client connects again at once, before anything more is durable; return what it hears but for the CONNACK."""
    version = client.write.version
    again = client.gateway.stranger(version)
    options = b"\x11" + FOR_A_DAY.to_bytes(4, "big") if version == 5 else b""
    heard = said(again, again.write.connect(name, is_clean=False, properties=options))
    assert heard[0].startswith("CONNACK present")
    return again, heard[1:]


# ---- From the client -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("qos", "answer"), [(1, "PUBACK"), (2, "PUBREC")])
@pytest.mark.parametrize("version", [4, 5])
def test_a_publish_is_answered_once_a_session_that_lasts_has_it(
    gateway: Gateway, version: int, qos: int, answer: str
) -> None:
    durable(gateway, "app").subscribe("t", 2)
    sensor = gateway.client("sensor", version)
    assert said(sensor, sensor.write.publish("t", qos=qos, id=7)) == []
    assert gateway.crashed().vhost.queue("mqtt-subscription-appqos1").ready.length == 0
    assert sensor.hear() == [f"{answer} #7"]
    assert gateway.crashed().vhost.queue("mqtt-subscription-appqos1").ready.length == 1


def test_one_that_nobody_keeps_is_answered_in_its_turn(gateway: Gateway) -> None:
    gateway.client("app").subscribe("t", 1)
    sensor = gateway.client("sensor")
    assert said(sensor, sensor.write.publish("t", qos=1, id=7)) == ["PUBACK #7"]


def test_a_retained_one_is_answered_once_it_is_durable(gateway: Gateway) -> None:
    sensor = gateway.client("sensor")
    assert said(sensor, sensor.write.publish("t", qos=1, id=7, retain=True)) == []
    assert sensor.hear() == ["PUBACK #7 NO_MATCHING_SUBSCRIBERS"]
    assert len(gateway.crashed().vhost.retained) == 1


def test_an_identifier_is_remembered_before_pubrec_says_so(gateway: Gateway) -> None:
    sensor = durable(gateway, "sensor")
    assert said(sensor, sensor.write.publish("t", qos=2, id=7)) == []
    assert sensor.hear() == ["PUBREC #7 NO_MATCHING_SUBSCRIBERS"]
    assert durable(gateway.crashed(), "sensor").publish("t", qos=2, id=7, dup=True) == ["PUBREC #7"]


def test_one_that_is_sent_again_is_answered_no_sooner_than_the_first(gateway: Gateway) -> None:
    sensor = durable(gateway, "sensor")
    assert said(sensor, sensor.write.publish("t", qos=2, id=7)) == []
    again, heard = back(sensor, lost(sensor))
    assert heard == []
    assert said(again, again.write.publish("t", qos=2, id=7, dup=True)) == []
    assert again.hear() == ["PUBREC #7"]


def test_an_identifier_is_forgotten_before_pubcomp_says_so(gateway: Gateway) -> None:
    sensor = durable(gateway, "sensor")
    sensor.publish("t", qos=2, id=7)
    assert said(sensor, sensor.write.pubrel(7)) == []
    assert sensor.hear() == ["PUBCOMP #7"]


def test_nor_is_it_said_to_who_asks_a_second_time(gateway: Gateway) -> None:
    """Else the client could use the identifier again, and a crash would make the next message look like the last."""
    sensor = durable(gateway, "sensor")
    sensor.publish("t", qos=2, id=7)
    assert said(sensor, sensor.write.pubrel(7)) == []
    again, _ = back(sensor, lost(sensor))
    assert said(again, again.write.pubrel(7)) == []
    assert again.hear() == ["PUBCOMP #7 PACKET_IDENTIFIER_NOT_FOUND"]


def test_a_session_that_does_not_last_waits_for_no_disk(gateway: Gateway) -> None:
    sensor = gateway.client("sensor")
    assert said(sensor, sensor.write.publish("t", qos=2, id=7)) == ["PUBREC #7 NO_MATCHING_SUBSCRIBERS"]
    assert said(sensor, sensor.write.pubrel(7)) == ["PUBCOMP #7"]


# ---- To the client ---------------------------------------------------------------------------------------------------


@pytest.fixture
def app(gateway: Gateway) -> Client:
    client = durable(gateway, "app")
    client.subscribe("t", 2)
    return client


def published(gateway: Gateway, body: bytes = b"hi") -> None:
    """Publish a message of QoS 2, which is not durable yet."""
    sensor = gateway.client(f"sensor-{len(gateway.broker.connections)}")
    sensor.machine.receive(sensor.write.publish("t", body, qos=2, id=1))
    gateway.end_turn()


def test_a_message_is_sent_exactly_once_when_its_identifier_is_durable(gateway: Gateway, app: Client) -> None:
    published(gateway)
    assert app.hear_now() == []
    assert app.hear() == ["PUBLISH q2 #1 t 'hi'"]
    again = gateway.crashed().client("app", is_clean=False)
    assert again.backlog == ["PUBLISH q2 #1 dup t 'hi'"]


def test_it_is_released_when_it_is_durable_that_the_client_has_it(gateway: Gateway, app: Client) -> None:
    published(gateway)
    app.hear()
    assert said(app, app.write.pubrec(1)) == []
    assert app.hear() == ["PUBREL #1"]
    assert gateway.crashed().client("app", is_clean=False).backlog == ["PUBREL #1"]


def test_nor_is_it_released_sooner_by_coming_back(gateway: Gateway, app: Client) -> None:
    """Else the client would forget an identifier that a crash makes us send the message under again."""
    published(gateway)
    app.hear()
    assert said(app, app.write.pubrec(1)) == []
    again, heard = back(app, lost(app))
    assert heard == []
    assert said(again, again.write.pubrec(1)) == []
    assert again.hear() == ["PUBREL #1", "PUBREL #1"]


def test_messages_of_less_wait_for_no_disk(gateway: Gateway, app: Client) -> None:
    app.subscribe("u", 1)
    sensor = gateway.client("sensor")
    sensor.machine.receive(sensor.write.publish("u", qos=1, id=1))
    assert app.hear_now() == ["PUBLISH q1 #1 u 'hi'"]


@pytest.mark.parametrize("version", [4, 5])
def test_a_subscription_is_confirmed_when_it_is_durable(gateway: Gateway, version: int) -> None:
    app = durable(gateway, "app", version)
    assert said(app, app.write.subscribe(("t", 1), id=3)) == []
    assert app.hear() == ["SUBACK #3 1"]
    assert len(gateway.crashed().vhost.sessions.get("app").subscriptions) == 1  # type: ignore[union-attr]
    assert said(app, app.write.unsubscribe("t", id=4)) == []
    assert app.hear() == ["UNSUBACK #4 0" if version == 5 else "UNSUBACK #4"]


def test_nothing_overtakes_what_waits_for_the_disk(gateway: Gateway, app: Client) -> None:
    published(gateway, b"first")
    sensor = gateway.client("sensor")
    sensor.machine.receive(sensor.write.publish("t", b"second"))
    assert app.hear() == ["PUBLISH q2 #1 t 'first'", "PUBLISH t 'second'"]


# ---- A store that cannot write ---------------------------------------------------------------------------------------


def test_while_the_store_is_stalled_nothing_is_promised(gateway: Gateway, app: Client) -> None:
    gateway.store.stall("the disk is full")
    sensor = durable(gateway, "sensor")
    assert sensor.publish("t", qos=1, id=1) == []
    assert sensor.publish("t", qos=2, id=2) == []
    assert app.hear() == ["PUBLISH q1 #1 t 'hi'"]
    gateway.store.resume()
    assert sensor.hear() == ["PUBACK #1", "PUBREC #2"]
    assert app.hear() == ["PUBLISH q2 #2 t 'hi'"]


@pytest.mark.parametrize(
    ("version", "answers"), [(5, ["PUBACK #1 QUOTA_EXCEEDED", "PUBREC #2 QUOTA_EXCEEDED"]), (4, [])]
)
def test_when_it_fails_the_publishers_hear_so(version: int, answers: list[str]) -> None:
    gateway = Gateway(store=MemoryStore(), clock=FakeClock())
    durable(gateway, "app").subscribe("t", 2)
    sensor = durable(gateway, "sensor", version)
    gateway.store.stall("the disk is full")
    sensor.publish("t", qos=1, id=1)
    sensor.publish("t", qos=2, id=2)
    gateway.store.fail("the disk is broken")
    assert sensor.hear() == answers


# ---- Several queues of one session -----------------------------------------------------------------------------------


def test_what_a_group_brings_does_not_make_a_session_forget_what_it_was_sent(gateway: Gateway) -> None:
    """A message of its own that waits for credit keeps its identifier, whatever a group sends meanwhile."""
    app = durable(gateway, "app", properties=receive_maximum(2))
    app.subscribe("t", 2)
    app.subscribe("$share/g/u", 2)
    sensor = gateway.client("sensor")
    sensor.publish("t", b"one", qos=2, id=1)
    sensor.publish("t", b"two", qos=2, id=2)
    assert app.hear() == ["PUBLISH q2 #1 t 'one'", "PUBLISH q2 #2 t 'two'"]
    app.lose()
    sensor.publish("u", b"three", qos=2, id=3)
    again = durable(gateway, "app", properties=receive_maximum(1))
    heard = [*again.backlog]
    assert heard == ["PUBLISH q2 #1 dup t 'one'"]
    for _ in range(3):
        for packet_id in (1, 3, 2):
            heard += again.say(again.write.pubrec(packet_id), again.write.pubcomp(packet_id))
    assert [line for line in heard if "two" in line] == ["PUBLISH q2 #2 dup t 'two'"]
    assert [line for line in heard if "three" in line] == ["PUBLISH q2 #3 u 'three'"]


@pytest.mark.parametrize("version", [4, 5])
def test_what_waited_with_qos_0_is_sent_once_it_cannot_come_back(gateway: Gateway, version: int) -> None:
    app = durable(gateway, "app", version)
    app.subscribe("t", 0)
    app.lose()
    gateway.client("sensor").publish("t", b"kept", qos=1, id=1)
    gateway.settle()
    assert gateway.crashed().vhost.queue("mqtt-subscription-appqos0").ready.length == 1
    again = gateway.stranger(version)
    options = b"\x11" + FOR_A_DAY.to_bytes(4, "big") if version == 5 else b""
    heard = said(again, again.write.connect("app", is_clean=False, properties=options))
    assert [line.split()[0] for line in heard] == ["CONNACK"]
    assert again.hear() == ["PUBLISH t 'kept'"]
    assert gateway.crashed().vhost.queue("mqtt-subscription-appqos0").ready.length == 0


def test_nor_is_it_sent_sooner_to_who_could_not_take_it(gateway: Gateway) -> None:
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
    sent = app.hear_now() + app.hear_now()
    assert len(sent) == 15 - waiting
    assert len(app.hear()) == waiting


def test_what_comes_with_qos_0_to_who_is_there_waits_for_nothing(gateway: Gateway) -> None:
    app = durable(gateway, "app")
    app.subscribe("t", 0)
    gateway.settle()
    sensor = gateway.client("sensor")
    sensor.machine.receive(sensor.write.publish("t", b"now", qos=1, id=1))
    assert app.hear_now() == ["PUBLISH t 'now'"]
