"""Receive Maximum in both directions (3.3.4, 4.9)."""

import pytest

from gateway_mqtt.codec.properties import PropertyId
from tests.conformance.mqtt.tables import CLOSED, statements
from tests.protocols.mqtt.dialogue import Client, Gateway
from tests.protocols.mqtt.packets import FIVE, receive_maximum


def publish(gateway: Gateway, count: int, qos: int, topic: str = "t") -> None:
    writer = gateway.client("w")
    for number in range(1, count + 1):
        writer.publish(topic, b"%d" % number, qos=qos, id=number)


def reader_of(gateway: Gateway, window: int, qos: int = 2) -> Client:
    reader = gateway.client("r", is_clean=False, expiry=100, properties=receive_maximum(window))
    reader.subscribe("t", qos)
    return reader


@statements("3.3.4-9 4.9.0-1 4.9.0-2")
@pytest.mark.parametrize("window", [1, 2, 7])
def test_unacknowledged_deliveries_do_not_exceed_receive_maximum(gateway: Gateway, version: int, window: int) -> None:
    reader = reader_of(gateway, window)
    publish(gateway, 10, 1)
    assert reader.receive() == [f"PUBLISH q1 #{number} t '{number}'" for number in range(1, window + 1)]
    for number in range(1, 10 - window + 1):
        following = window + number
        assert reader.puback(number) == [f"PUBLISH q1 #{following} t '{following}'"]


@statements("3.3.4-9 4.9.0-2")
def test_a_qos_2_delivery_frees_its_credit_on_pubcomp(gateway: Gateway, version: int) -> None:
    reader = reader_of(gateway, 1)
    publish(gateway, 2, 2)
    assert reader.receive() == ["PUBLISH q2 #1 t '1'"]
    assert reader.pubrec(1) == ["PUBREL #1"]
    assert reader.receive() == []
    assert reader.pubcomp(1) == ["PUBLISH q2 #2 t '2'"]


@statements("3.3.4-9")
@pytest.mark.parametrize("qos", [1, 2])
def test_a_refusal_frees_credit(gateway: Gateway, version: int, qos: int) -> None:
    reader = reader_of(gateway, 1)
    publish(gateway, 2, qos)
    assert len(reader.receive()) == 1
    received = reader.puback(1, 0x80) if qos == 1 else reader.pubrec(1, 0x80)
    assert [line.split()[-1] for line in received] == ["'2'"]


@statements("4.9.0-2")
def test_acknowledgements_of_unknown_identifiers_free_no_credit(gateway: Gateway, version: int) -> None:
    reader = reader_of(gateway, 1)
    publish(gateway, 3, 1)
    reader.receive()
    assert reader.request(FIVE.puback(9), FIVE.pubcomp(9), FIVE.pubcomp(1)) == []
    assert len(reader.request(FIVE.puback(1), FIVE.puback(1))) == 1


@statements("3.3.4-9")
def test_receive_maximum_is_shared_by_all_subscriptions(gateway: Gateway, version: int) -> None:
    reader = reader_of(gateway, 3)
    reader.subscribe("$share/g/x", 1)
    publish(gateway, 2, 1)
    publish(gateway, 2, 1, "x")
    received = reader.receive()
    assert len(received) == 3
    [line] = reader.puback(1)
    assert line.startswith("PUBLISH q1")


@statements("3.3.4-10 4.9.0-3")
def test_other_packets_do_not_wait_for_credit(gateway: Gateway, version: int) -> None:
    reader = reader_of(gateway, 1)
    reader.subscribe("zero", 0)
    publish(gateway, 2, 1)
    assert reader.receive() == ["PUBLISH q1 #1 t '1'"]
    publish(gateway, 2, 1, "zero")
    assert reader.receive() == ["PUBLISH zero '1'", "PUBLISH zero '2'"]
    assert reader.request(FIVE.pingreq()) == ["PINGRESP"]
    assert reader.subscribe("x", id=7) == ["SUBACK #7 0"]
    assert reader.unsubscribe("x", id=8) == ["UNSUBACK #8 0"]
    assert reader.publish("unrouted", qos=1, id=5) == ["PUBACK #5 NO_MATCHING_SUBSCRIBERS"]
    assert reader.publish("unrouted", qos=2, id=6) == ["PUBREC #6 NO_MATCHING_SUBSCRIBERS"]
    assert reader.pubrel(6) == ["PUBCOMP #6"]


@statements("3.3.4-10 4.9.0-3")
def test_a_pubrel_does_not_wait_for_credit(gateway: Gateway, version: int) -> None:
    reader = reader_of(gateway, 2)
    publish(gateway, 4, 2)
    assert len(reader.receive()) == 2
    assert reader.request(FIVE.pubrec(1), FIVE.pubrec(2)) == ["PUBREL #1", "PUBREL #2"]


@statements("3.3.4-9 4.4.0-1 4.9.0-1")
@pytest.mark.parametrize("qos", [1, 2])
def test_resent_deliveries_respect_the_new_receive_maximum(gateway: Gateway, version: int, qos: int) -> None:
    reader = reader_of(gateway, 10)
    publish(gateway, 3, qos)
    assert len(reader.receive()) == 3
    reader.lose()
    back = gateway.client("r", is_clean=False, expiry=100, properties=receive_maximum(1))
    assert back.backlog == [f"PUBLISH q{qos} #1 dup t '1'"]
    received = back.puback(1) if qos == 1 else back.pubrec(1) + back.pubcomp(1)
    assert received[-1] == f"PUBLISH q{qos} #2 dup t '2'"


@statements("3.3.4-9 4.4.0-1")
def test_resent_pubrels_count_against_receive_maximum(gateway: Gateway, version: int) -> None:
    reader = reader_of(gateway, 2)
    publish(gateway, 4, 2)
    reader.receive()
    reader.pubrec(1)
    reader.lose()
    back = gateway.client("r", is_clean=False, expiry=100, properties=receive_maximum(2))
    assert back.backlog == ["PUBREL #1", "PUBLISH q2 #2 dup t '2'"]
    assert back.pubcomp(1) == ["PUBLISH q2 #3 t '3'"]


# ---------------------------------------------------------------- Receive Maximum of the server


@statements("3.3.4-7 4.9.0-1")
@pytest.mark.parametrize("qos", [1, 2])
def test_a_client_that_exceeds_the_server_s_receive_maximum_is_disconnected(version: int, qos: int) -> None:
    gateway = Gateway(receive_maximum=3)
    client = gateway.client("c")
    assert client.welcome.all(PropertyId.RECEIVE_MAXIMUM) == [3]
    packets = [FIVE.publish("unrouted", qos=qos, id=number) for number in range(1, 5)]
    received = client.request(*packets)
    assert received[-2:] == ["DISCONNECT RECEIVE_MAXIMUM_EXCEEDED", CLOSED]


@statements("3.3.4-7 4.9.0-1")
@pytest.mark.parametrize("qos", [1, 2])
def test_publishes_up_to_receive_maximum_may_wait_for_the_disk(version: int, qos: int) -> None:
    gateway = Gateway(receive_maximum=3)
    gateway.client("kept", is_clean=False, expiry=100).subscribe("t", 1)
    client = gateway.client("c", is_clean=False, expiry=100)
    client.machine.receive(b"".join(FIVE.publish("t", qos=qos, id=number) for number in (1, 2, 3)))
    assert client.receive_now() == []
    name = "PUBACK" if qos == 1 else "PUBREC"
    assert client.receive() == [f"{name} #{number}" for number in (1, 2, 3)]


@statements("3.3.4-7")
def test_resent_publishes_do_not_count_twice(version: int) -> None:
    gateway = Gateway(receive_maximum=3)
    gateway.client("r").subscribe("t", 0)
    client = gateway.client("c")
    sent = [FIVE.publish("t", qos=2, id=number) for number in (1, 2, 3)]
    assert client.request(*sent) == ["PUBREC #1", "PUBREC #2", "PUBREC #3"]
    assert client.request(*sent) == ["PUBREC #1", "PUBREC #2", "PUBREC #3"]
    assert client.pubrel(2) == ["PUBCOMP #2"]
    assert client.publish("t", qos=2, id=4) == ["PUBREC #4"]
    assert client.publish("t", qos=2, id=5) == ["DISCONNECT RECEIVE_MAXIMUM_EXCEEDED", CLOSED]


@statements("3.3.4-7")
def test_refused_publishes_do_not_count(version: int) -> None:
    gateway = Gateway(receive_maximum=1)
    client = gateway.client("c")
    for number in range(1, 5):
        refused = client.publish("t", b"\xff", qos=2, id=number, properties=b"\x01\x01")
        assert refused == [f"PUBREC #{number} PAYLOAD_FORMAT_INVALID"]
