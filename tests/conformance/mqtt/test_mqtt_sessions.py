"""Sessions: the state kept between connections, and its expiry (3.1.2, 4.1, 4.4, 4.5)."""

import pytest

from tests.conformance.mqtt.tables import CLOSED, PROTOCOL_ERROR, statements
from tests.protocols.mqtt.dialogue import Client, Gateway
from tests.protocols.mqtt.packets import session_expiry


def persistent_client(gateway: Gateway, version: int, client_id: str = "c", expiry: int = 100) -> Client:
    """Return a client with a persistent session and a QoS 2 subscription to ``t``."""
    client = gateway.client(client_id, version, is_clean=False, expiry=expiry)
    client.subscribe("t", 2)
    return client


@statements("3.1.2-4 3.1.4-4 3.2.2-2", "3.1.2-6 3.1.4-3 3.2.2-1")
def test_a_clean_start_deletes_the_session(gateway: Gateway, version: int) -> None:
    client = persistent_client(gateway, version)
    gateway.client("w").publish("t", qos=1, id=1)
    assert client.receive() == ["PUBLISH q1 #1 t 'hi'"]
    client.lose()
    assert gateway.new_client(version).connect("c", is_clean=True, expiry=100) == ["CONNACK"]
    again = gateway.client("c", version)
    assert again.publish("t", qos=1, id=2) == [
        "PUBACK #2 NO_MATCHING_SUBSCRIBERS" if version == 5 else "PUBACK #2"
    ]  # its subscription is gone too


@statements("3.1.2-5 3.1.2-23 3.2.2-3", "3.1.2-4 3.2.2-2")
def test_a_session_is_resumed(gateway: Gateway, version: int) -> None:
    persistent_client(gateway, version).lose()
    gateway.client("w").publish("t", qos=2, id=1)
    back = gateway.new_client(version)
    assert back.connect("c", is_clean=False, expiry=100) == ["CONNACK present", "PUBLISH q2 #1 t 'hi'"]
    gateway.client("x").publish("t", b"more")
    assert back.receive() == ["PUBLISH t 'more'"]


@statements("3.1.2-6 3.2.2-3", "3.1.2-4 3.2.2-3")
def test_a_client_without_a_session_gets_a_new_one(gateway: Gateway, version: int) -> None:
    assert gateway.new_client(version).connect("c", is_clean=False, expiry=100) == ["CONNACK"]


@statements("3.1.2-4", "3.1.2-6")
def test_a_new_session_has_nothing_of_the_deleted_one(gateway: Gateway, version: int) -> None:
    client = gateway.client("c", version, is_clean=True)
    client.subscribe("t", 1)
    client.lose()
    gateway.client("w").publish("t", qos=1, id=1)
    assert gateway.new_client(version).connect("c", is_clean=False, expiry=100) == ["CONNACK"]


@statements("4.5.0-1 3.1.2-23", "3.1.2-5 4.5.0-1 4.1.0-1")
@pytest.mark.parametrize("qos", [1, 2])
def test_messages_wait_for_an_offline_client(gateway: Gateway, version: int, qos: int) -> None:
    persistent_client(gateway, version).disconnect()
    writer = gateway.client("w")
    for number in range(3):
        writer.publish("t", b"%d" % number, qos=qos, id=number + 1)
    assert gateway.client("c", version, is_clean=False).backlog == [
        f"PUBLISH q{qos} #{number + 1} t '{number}'" for number in range(3)
    ]


@statements("4.5.0-1", "4.5.0-1")
def test_a_message_is_in_every_session_with_a_matching_subscription(gateway: Gateway, version: int) -> None:
    clients = [gateway.client(f"c{number}", version) for number in range(5)]
    for client, filter in zip(clients, ["a/b", "a/+", "#", "+/b", "a/c"], strict=True):
        client.subscribe(filter, 1)
    gateway.client("w").publish("a/b", qos=1, id=1)
    assert [client.receive() for client in clients] == [["PUBLISH q1 #1 a/b 'hi'"]] * 4 + [[]]


@statements("3.1.2-23", "3.1.2-4 4.1.0-1")
def test_a_session_survives_a_crash(gateway: Gateway, version: int) -> None:
    persistent_client(gateway, version)
    gateway.client("w").publish("t", qos=1, id=1)
    back = gateway.crashed().new_client(version)
    [present, message] = back.connect("c", is_clean=False, expiry=100)
    assert present == "CONNACK present"
    assert message in ("PUBLISH q1 #1 t 'hi'", "PUBLISH q1 #1 dup t 'hi'")  # unknown whether it had arrived


@statements("4.1.0-1", "4.1.0-2")
def test_a_session_lasts_at_least_as_long_as_its_connection(gateway: Gateway, version: int) -> None:
    client = persistent_client(gateway, version, expiry=5)
    client.subscribe("t", 1)
    gateway.advance(1_000_000)
    gateway.client("w").publish("t", qos=1, id=1)
    assert client.receive() == ["PUBLISH q1 #1 t 'hi'"]


@statements("4.1.0-2")
@pytest.mark.parametrize(("waited_s", "line"), [(9, "CONNACK present"), (11, "CONNACK")])
def test_a_session_ends_after_its_expiry_interval(gateway: Gateway, version: int, waited_s: int, line: str) -> None:
    persistent_client(gateway, version, expiry=10).lose()
    gateway.advance(waited_s)
    assert gateway.new_client(version).connect("c", is_clean=False)[:1] == [line]


@statements("4.1.0-2")
def test_an_expired_session_is_deleted_without_a_reconnect(gateway: Gateway, version: int) -> None:
    persistent_client(gateway, version, expiry=10).lose()
    gateway.advance(11)
    assert len(gateway.vhost.sessions) == 0
    assert [name for name in gateway.vhost.queue_by_name if name.startswith("mqtt")] == []


@statements("3.1.2-23 4.1.0-2")
def test_a_session_without_expiry_ends_with_its_connection(gateway: Gateway, version: int) -> None:
    client = gateway.client("c", version, is_clean=False)
    client.subscribe("t", 1)
    client.lose()
    assert gateway.new_client(version).connect("c", is_clean=False) == ["CONNACK"]


@statements("3.1.2-23")
def test_an_expiry_above_the_maximum_is_reduced_and_sent_to_the_client(version: int) -> None:
    gateway = Gateway(max_session_expiry_s=50)
    client = gateway.client("c", version, is_clean=False, expiry=0xFFFFFFFF)
    assert " SESSION_EXPIRY_INTERVAL=50" in str(client.welcome)
    client.lose()
    gateway.advance(51)
    assert gateway.new_client(version).connect("c", is_clean=False) == ["CONNACK"]


@statements("4.1.0-2")
@pytest.mark.parametrize(("waited_s", "line"), [(19, "CONNACK present"), (21, "CONNACK")])
@pytest.mark.parametrize("first", [10, 1000])
def test_disconnect_may_change_the_expiry_interval(
    gateway: Gateway, version: int, first: int, waited_s: int, line: str
) -> None:
    assert persistent_client(gateway, version, expiry=first).disconnect(0, session_expiry(20)) == [CLOSED]
    gateway.advance(waited_s)
    assert gateway.new_client(version).connect("c", is_clean=False)[:1] == [line]


@statements("4.1.0-2")
def test_disconnect_may_end_the_session(gateway: Gateway, version: int) -> None:
    assert persistent_client(gateway, version).disconnect(0, session_expiry(0)) == [CLOSED]
    assert gateway.new_client(version).connect("c", is_clean=False) == ["CONNACK"]


@statements("4.13.1-1")
def test_disconnect_cannot_extend_a_session_without_expiry(gateway: Gateway, version: int) -> None:
    client = gateway.client("c", version)
    assert client.disconnect(0, session_expiry(10)) == list(PROTOCOL_ERROR)  # 3.14.2.2.2


@statements("", "3.1.2-7")
def test_a_retained_message_outlives_the_session_of_its_publisher(gateway: Gateway, version: int) -> None:
    client = gateway.client("c", version)
    client.publish("t", retain=True)
    client.disconnect()
    reader = gateway.client("r", version)
    assert reader.subscribe("t") == ["SUBACK #1 0", "PUBLISH retain t 'hi'"]


# ---------------------------------------------------------------- resending


@statements("4.4.0-1 3.3.1-1", "4.4.0-1 3.3.1-1")
@pytest.mark.parametrize("qos", [1, 2])
def test_unacknowledged_deliveries_are_resent_with_their_identifiers(gateway: Gateway, version: int, qos: int) -> None:
    client = persistent_client(gateway, version)
    writer = gateway.client("w")
    for number in range(3):
        writer.publish("t", b"%d" % number, qos=qos, id=number + 1)
    assert len(client.receive()) == 3
    answer = client.write.puback if qos == 1 else client.write.pubrec
    client.request(answer(2))
    client.lose()
    again = [f"PUBLISH q{qos} #1 dup t '0'", f"PUBLISH q{qos} #3 dup t '2'"]
    assert gateway.client("c", version, is_clean=False).backlog == (again if qos == 1 else ["PUBREL #2", *again])


@statements("4.4.0-1", "4.4.0-1")
def test_an_uncompleted_pubrel_is_resent(gateway: Gateway, version: int) -> None:
    client = persistent_client(gateway, version)
    gateway.client("w").publish("t", qos=2, id=1)
    client.pubrec(1)
    client.lose()
    back = gateway.client("c", version, is_clean=False, expiry=100)
    assert back.backlog == ["PUBREL #1"]
    back.pubcomp(1)
    back.lose()
    assert gateway.client("c", version, is_clean=False).backlog == []


@statements("4.4.0-1")
def test_nothing_is_resent_on_the_same_connection(gateway: Gateway, version: int) -> None:
    client = persistent_client(gateway, version)
    gateway.client("w").publish("t", qos=1, id=1)
    gateway.client("w").publish("t", qos=2, id=1)
    assert len(client.receive()) == 2
    client.pubrec(2)
    gateway.advance(10_000)
    assert client.request(client.write.pingreq()) == ["PINGRESP"]


@statements("", "4.6.0-1")
def test_deliveries_are_resent_in_their_original_order(gateway: Gateway, version: int) -> None:
    client = persistent_client(gateway, version)
    writer = gateway.client("w")
    for number in range(10):
        writer.publish("t", b"%d" % number, qos=1 + number % 2, id=number + 1)
        writer.pubrel(number + 1)
    first = client.receive()
    client.lose()
    again = gateway.client("c", version, is_clean=False).backlog
    assert again == [line.replace(" t ", " dup t ") for line in first]


@statements("4.4.0-2", "")
@pytest.mark.parametrize("qos", [1, 2])
def test_refused_deliveries_are_not_resent(gateway: Gateway, version: int, qos: int) -> None:
    client = persistent_client(gateway, version)
    gateway.client("w").publish("t", qos=qos, id=1)
    client.receive()
    assert (client.puback(1, 0x80) if qos == 1 else client.pubrec(1, 0x97)) == []
    client.lose()
    assert gateway.client("c", version, is_clean=False).backlog == []
