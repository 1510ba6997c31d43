"""Limits of one client's requests and their refusals; large requests are processed in slices."""

import pytest

from gateway.kernel.sessions.session import Session
from gateway_mqtt.codec.properties import MOST_REPEATED
from tests.clocks import TickingClock
from tests.protocols.mqtt.dialogue import Client, Gateway
from tests.protocols.mqtt.packets import FIVE, session_expiry, user_property

RECEIVE_MAXIMUM = b"\x21\xff\xff"


@pytest.mark.parametrize(("version", "refused"), [(5, "97"), (4, "80"), (3, "80")])
def test_the_number_of_subscriptions_of_a_session_is_limited(version: int, refused: str) -> None:
    gateway = Gateway(max_subscriptions=2)
    client = gateway.client("c", version)
    assert client.request(client.write.subscribe(("a", 0), ("b", 0), ("c", 0))) == [f"SUBACK #1 0 0 {refused}"]
    assert client.subscribe("a", 1) == ["SUBACK #1 1"]  # replaces the existing one
    client.unsubscribe("b")
    assert client.subscribe("$share/g/c", 1) == ["SUBACK #1 1"]
    assert client.subscribe("d", 1) == [f"SUBACK #1 {refused}"]


@pytest.mark.parametrize("name", ["subscribe", "unsubscribe"])
def test_the_number_of_filters_of_a_request_is_limited(name: str) -> None:
    gateway = Gateway(max_filters=3)
    client = gateway.client("c", is_clean=False, expiry=60)
    filters = [f"t/{number}" for number in range(4)]
    many = FIVE.subscribe(*((filter, 0) for filter in filters)) if name == "subscribe" else FIVE.unsubscribe(*filters)
    assert client.request(many) == ["DISCONNECT QUOTA_EXCEEDED", "closed"]
    session = gateway.vhost.sessions.get("c")
    assert session is not None
    assert len(session.subscriptions) == 0


def test_the_number_of_unacknowledged_deliveries_of_a_client_is_limited() -> None:
    gateway = Gateway(max_inflight=2)
    client, writer = gateway.client("c", properties=RECEIVE_MAXIMUM), gateway.client("w")
    client.subscribe("t", 1)
    for _ in range(3):
        writer.publish("t", qos=1, id=1)
    assert len(client.receive()) == 2
    assert client.puback(1) == ["PUBLISH q1 #3 t 'hi'"]


def test_the_number_of_user_properties_of_a_packet_is_limited() -> None:
    gateway = Gateway()
    pair = user_property("a", "b")
    client = gateway.client("c")
    assert client.publish("t", properties=pair * MOST_REPEATED) == []
    assert client.publish("t", properties=pair * (MOST_REPEATED + 1)) == ["DISCONNECT QUOTA_EXCEEDED", "closed"]
    received = gateway.new_client().connect("d", properties=pair * (MOST_REPEATED + 1))
    assert received == ["CONNACK QUOTA_EXCEEDED", "closed"]


@pytest.mark.parametrize("name", ["subscribe", "unsubscribe"])
def test_a_large_request_is_processed_in_slices_and_later_packets_wait(name: str) -> None:
    clock = TickingClock(is_ticking=False)
    gateway = Gateway(clock=clock)
    client = gateway.client("c")
    filters = [f"t/{number}" for number in range(100)]
    subscribe = FIVE.subscribe(*((filter, 1) for filter in filters))
    if name == "subscribe":
        request, answer = subscribe, "SUBACK #1" + " 1" * 100
    else:
        client.request(subscribe)
        request, answer = FIVE.unsubscribe(*filters), "UNSUBACK #2" + " 0" * 100
    clock.is_ticking = True
    client.machine.receive(request + FIVE.pingreq() + FIVE.subscribe(("last", 0), id=3))
    turns, received = 0, client.receive_now()
    while client.machine.is_held:
        assert not received or turns > 10, "answered before it was finished"
        turns += 1
        client.machine.receive(b"")
        received += client.receive_now()
    clock.is_ticking = False
    assert received + client.receive() == [answer, "PINGRESP", "SUBACK #3 0"]


def test_a_client_that_disconnects_during_a_large_request_leaves_nothing_behind() -> None:
    clock = TickingClock(is_ticking=False)
    gateway = Gateway(clock=clock)
    client = gateway.client("c")
    clock.is_ticking = True
    client.machine.receive(FIVE.subscribe(*((f"t/{number}", 1) for number in range(100))))
    assert client.machine.is_held
    client.lose()
    client.machine.receive(b"")
    assert not client.machine.is_held
    assert len(gateway.vhost.sessions) == 0
    assert not [name for name in gateway.vhost.queue_by_name if name.startswith("mqtt")]


@pytest.mark.parametrize("count", [10, 100])
def test_unsubscribing_keeps_a_binding_that_another_filter_needs(count: int) -> None:
    """With RabbitMQ's mapping two filters can have the same binding key; above 32 subscriptions an index is used."""
    gateway = Gateway(lossy_vhosts=frozenset({"/"}))
    client, writer = gateway.client("c"), gateway.client("w")
    client.request(FIVE.subscribe(*((f"f/{number}", 1) for number in range(count))))
    client.subscribe("a/b", 1)
    client.subscribe("a.b", 1)
    client.unsubscribe("a/b")
    assert writer.publish("a/b", qos=1, id=1) == ["PUBACK #1"]
    assert len(client.receive()) == 1
    client.unsubscribe("a.b")
    assert writer.publish("a/b", qos=1, id=1) == ["PUBACK #1 NO_MATCHING_SUBSCRIBERS"]


# ---- Large sessions are deleted in slices ----------------------------------------------------------------------------


def large(gateway: Gateway, expiry: int = 600) -> Client:
    """Return a client with a session of 300 subscriptions, some of them shared."""
    client = gateway.client("c", is_clean=False, expiry=expiry)
    client.request(FIVE.subscribe(*((f"t/{number}", 1) for number in range(250))))
    client.request(FIVE.subscribe(*((f"$share/g/t/{number}", 1) for number in range(50))))
    return client


def queues_of_sessions(gateway: Gateway) -> list[str]:
    return [name for name in gateway.vhost.queue_by_name if name.startswith("mqtt-")]


def test_a_clean_start_waits_until_the_client_s_large_session_is_deleted() -> None:
    clock = TickingClock(is_ticking=False)
    gateway = Gateway(clock=clock)
    large(gateway).lose()
    gateway.client("w").publish("t/1", b"old", qos=1, id=1)
    clock.is_ticking = True
    client = gateway.new_client()
    client.machine.receive(FIVE.connect("c", is_clean=True) + FIVE.subscribe(("t/1", 1)))
    assert client.receive_now() == [], "deleting the session takes more than one turn"
    clock.is_ticking = False
    gateway.advance(1)
    assert [line.split(" MAXIMUM")[0] for line in client.receive()] == ["CONNACK", "SUBACK #1 1"]
    assert gateway.client("w2").publish("t/1", b"new", qos=1, id=1) == ["PUBACK #1"]
    assert client.receive() == ["PUBLISH q1 #1 t/1 'new'"]
    assert queues_of_sessions(gateway) == ["mqtt-subscription-cqos1"]


def test_a_client_that_reconnects_while_its_large_session_expires_gets_a_new_one() -> None:
    clock = TickingClock(is_ticking=False)
    gateway = Gateway(clock=clock)
    large(gateway, expiry=0).lose()
    large(gateway, expiry=10).lose()
    clock.is_ticking = True
    client = gateway.new_client()
    gateway.vhost.sessions.end(gateway.vhost.sessions.get("c"))  # type: ignore[arg-type]
    client.machine.receive(FIVE.connect("c", is_clean=False, properties=session_expiry(60)))
    assert client.receive_now() == []
    clock.is_ticking = False
    gateway.advance(1)
    assert client.receive()[0].startswith("CONNACK ")
    assert client.subscribe("t/1", 1) == ["SUBACK #1 1"]
    assert gateway.client("w").publish("t/1", qos=1, id=1) == ["PUBACK #1"]
    assert client.receive() == ["PUBLISH q1 #1 t/1 'hi'"]
    again = gateway.crashed()
    assert again.client("c", is_clean=False, expiry=60).subscribe("t/2", 1) == ["SUBACK #1 1"]


def test_a_client_that_takes_over_a_large_session_without_expiry_waits_until_it_is_deleted() -> None:
    clock = TickingClock(is_ticking=False)
    gateway = Gateway(clock=clock)
    first = large(gateway, expiry=0)
    clock.is_ticking = True
    client = gateway.new_client()
    client.machine.receive(FIVE.connect("c", is_clean=False, properties=session_expiry(60)))
    assert client.receive_now() == []
    clock.is_ticking = False
    gateway.advance(1)
    assert first.receive() == ["DISCONNECT SESSION_TAKEN_OVER", "closed"]
    assert client.receive()[0].startswith("CONNACK ")
    assert client.subscribe("t/1", 1) == ["SUBACK #1 1"]
    assert gateway.client("w").publish("t/1", qos=1, id=1) == ["PUBACK #1"]
    assert client.receive() == ["PUBLISH q1 #1 t/1 'hi'"]


def test_a_client_that_disconnects_during_that_wait_leaves_nothing_behind() -> None:
    clock = TickingClock(is_ticking=False)
    gateway = Gateway(clock=clock)
    large(gateway).lose()
    clock.is_ticking = True
    client = gateway.new_client()
    client.machine.receive(FIVE.connect("c", is_clean=True))
    client.lose()
    clock.is_ticking = False
    gateway.advance(1)
    assert len(gateway.vhost.sessions) == 0
    assert queues_of_sessions(gateway) == []


@pytest.mark.source
def test_a_session_with_many_groups_resumes_with_few_lookups_per_group(monkeypatch: pytest.MonkeyPatch) -> None:
    gateway = Gateway()
    client = gateway.client("c", is_clean=False, expiry=600)
    client.request(FIVE.subscribe(*((f"$share/g/t/{number}", 1) for number in range(200))))
    client.lose()
    looks = []
    queue_name = Session.queue_name
    monkeypatch.setattr(Session, "queue_name", lambda *asked: looks.append(asked) or queue_name(*asked))
    again = gateway.client("c", is_clean=False, expiry=600)
    assert gateway.client("w").publish("t/199", qos=1, id=1) == ["PUBACK #1"]
    assert again.receive() == ["PUBLISH q1 #1 t/199 'hi'"]
    assert 200 <= len(looks) <= 1000
