"""The delivery protocols of QoS 0, 1 and 2, in both directions and with any order of packets (4.3)."""

import pytest

from gateway.kernel.journal.records.topology import PolicyRecord
from gateway.kernel.messages.message import Value
from tests.conformance.mqtt.tables import PROTOCOL_ERROR, statements, worded
from tests.protocols.mqtt.dialogue import Client, Gateway
from tests.protocols.mqtt.packets import FIVE, message_expiry, payload_format


@pytest.fixture
def reader(gateway: Gateway) -> Client:
    reader = gateway.client("reader")
    reader.subscribe("t", 0)
    return reader


# ---------------------------------------------------------------- publishes of clients


@statements("4.3.2-4", "4.3.2-2")
def test_a_qos_1_publish_is_acknowledged_once_the_broker_has_stored_it(gateway: Gateway, version: int) -> None:
    kept = gateway.client("kept", is_clean=False, expiry=100)
    kept.subscribe("t", 1)
    kept.lose()
    writer = gateway.client("w", version)
    writer.machine.receive(writer.write.publish("t", qos=1, id=0x1234))
    assert writer.receive_now() == []  # the persistent message is not durable yet
    assert writer.receive() == ["PUBACK #4660"]
    [line] = gateway.crashed().client("kept", is_clean=False).backlog
    assert line.replace(" dup", "") == "PUBLISH q1 #1 t 'hi'"  # unknown after a crash whether it had been sent


@statements("4.3.2-5", "4.3.2-2")
@pytest.mark.parametrize("dup", [False, True])
def test_a_qos_1_publish_with_the_same_identifier_is_a_new_message(
    gateway: Gateway, reader: Client, version: int, dup: bool
) -> None:
    writer = gateway.client("w", version)
    for payload in (b"one", b"two"):
        assert writer.publish("t", payload, qos=1, id=1, dup=dup) == ["PUBACK #1"]
    assert reader.receive() == ["PUBLISH t 'one'", "PUBLISH t 'two'"]


@statements("4.3.3-8 4.3.3-11", "4.3.3-2")
def test_a_qos_2_publish_is_received_released_and_completed(gateway: Gateway, reader: Client, version: int) -> None:
    writer = gateway.client("w", version)
    assert writer.publish("t", qos=2, id=0x1234) == ["PUBREC #4660"]
    assert writer.pubrel(0x1234) == ["PUBCOMP #4660"]
    assert reader.receive() == ["PUBLISH t 'hi'"]


@statements("4.3.3-8", "4.3.3-2")
def test_a_qos_2_publish_is_received_once_the_broker_has_stored_it(gateway: Gateway, version: int) -> None:
    kept = gateway.client("kept", is_clean=False, expiry=100)
    kept.subscribe("t", 2)
    kept.lose()
    writer = gateway.client("w", version, is_clean=False, expiry=100)
    writer.machine.receive(writer.write.publish("t", qos=2, id=1))
    assert writer.receive_now() == []
    assert writer.receive() == ["PUBREC #1"]
    after = gateway.crashed()
    assert after.client("kept", is_clean=False).backlog == ["PUBLISH q2 #1 t 'hi'"]
    again = after.client("w", version, is_clean=False)
    assert again.publish("t", qos=2, id=1, dup=True) == ["PUBREC #1"]
    assert again.pubrel(1) == ["PUBCOMP #1"]
    assert after.client("kept", is_clean=False).backlog == []


@statements("4.3.3-10", "4.3.3-2")
@pytest.mark.parametrize("dup", [False, True])
def test_a_qos_2_publish_with_the_same_identifier_before_release_is_a_duplicate(
    gateway: Gateway, reader: Client, version: int, dup: bool
) -> None:
    writer = gateway.client("w", version)
    for _ in range(3):
        assert writer.publish("t", qos=2, id=1, dup=dup) == ["PUBREC #1"]
    assert reader.receive() == ["PUBLISH t 'hi'"]
    assert writer.pubrel(1) == ["PUBCOMP #1"]
    assert reader.receive() == []


@statements("4.3.3-10", "4.3.3-2")
def test_a_qos_2_publish_with_the_same_identifier_after_a_reconnect_is_a_duplicate(
    gateway: Gateway, reader: Client, version: int
) -> None:
    writer = gateway.client("w", version, is_clean=False, expiry=100)
    writer.publish("t", qos=2, id=1)
    writer.lose()
    writer = gateway.client("w", version, is_clean=False, expiry=100)
    assert writer.publish("t", qos=2, id=1, dup=True) == ["PUBREC #1"]
    assert writer.pubrel(1) == ["PUBCOMP #1"]
    assert reader.receive() == ["PUBLISH t 'hi'"]


@statements("4.3.3-12", "4.3.3-2")
@pytest.mark.parametrize("dup", [False, True])
def test_the_identifier_of_a_completed_qos_2_publish_is_free(
    gateway: Gateway, reader: Client, version: int, dup: bool
) -> None:
    writer = gateway.client("w", version)
    for payload in (b"one", b"two"):
        assert writer.publish("t", payload, qos=2, id=1, dup=dup) == ["PUBREC #1"]
        assert writer.pubrel(1) == ["PUBCOMP #1"]
    assert reader.receive() == ["PUBLISH t 'one'", "PUBLISH t 'two'"]


@statements("4.3.3-11", "4.3.3-2")
def test_every_pubrel_is_answered_with_pubcomp(gateway: Gateway, version: int) -> None:
    writer = gateway.client("w", version)
    writer.publish("t", qos=2, id=1)
    assert writer.pubrel(1) == ["PUBCOMP #1"]
    assert writer.pubrel(1) == worded(version, "PUBCOMP #1 PACKET_IDENTIFIER_NOT_FOUND")


@statements("4.3.3-10", "4.3.3-2")
def test_several_qos_2_publishes_may_be_in_progress(gateway: Gateway, reader: Client, version: int) -> None:
    writer = gateway.client("w", version)
    write = writer.write
    for number in (1, 2, 3):
        assert writer.publish("t", b"%d" % number, qos=2, id=number) == [f"PUBREC #{number}"]
    assert writer.pubrel(2) == ["PUBCOMP #2"]
    received = writer.request(*(write.publish("t", b"%d" % number, qos=2, id=number, dup=True) for number in (1, 2, 3)))
    assert received == ["PUBREC #1", "PUBREC #2", "PUBREC #3"]
    assert reader.receive() == ["PUBLISH t '1'", "PUBLISH t '2'", "PUBLISH t '3'", "PUBLISH t '2'"]


@statements("4.3.3-9")
def test_the_identifier_of_a_refused_publish_is_free(gateway: Gateway, reader: Client, version: int) -> None:
    writer = gateway.client("w")
    refused = writer.publish("t", b"\xff", qos=2, id=1, properties=payload_format(1))
    assert refused == ["PUBREC #1 PAYLOAD_FORMAT_INVALID"]
    assert writer.publish("t", b"good", qos=2, id=1, properties=payload_format(1)) == ["PUBREC #1"]
    assert reader.receive() == ["PUBLISH t 'good' PAYLOAD_FORMAT_INDICATOR=1"]
    assert writer.pubrel(1) == ["PUBCOMP #1"]


@statements("4.3.3-9")
def test_the_identifier_of_a_publish_that_a_full_queue_refused_is_free(gateway: Gateway, version: int) -> None:
    definition: dict[str, Value] = {"max-length": 1, "overflow": "reject-publish"}
    gateway.broker.put_policy(PolicyRecord("/", "full", False, "^mqtt-subscription", "queues", 0, definition))
    full = gateway.client("full", is_clean=False, expiry=100)
    full.subscribe("t", 2)
    full.lose()
    writer = gateway.client("w")
    assert writer.publish("t", b"one", qos=2, id=1) == ["PUBREC #1"]
    for _ in range(2):
        assert writer.publish("t", b"two", qos=2, id=2) == ["PUBREC #2 QUOTA_EXCEEDED"]
    assert gateway.client("full", is_clean=False, expiry=100).backlog == ["PUBLISH q2 #1 t 'one'"]
    gateway.client("full").subscribe("t", 0)
    assert writer.publish("t", b"two", qos=2, id=2) == ["PUBREC #2"]


@statements("4.3.3-13")
def test_a_qos_2_publish_is_completed_even_if_the_message_expired(gateway: Gateway, version: int) -> None:
    kept = gateway.client("kept", is_clean=False, expiry=100)
    kept.subscribe("t", 2)
    kept.lose()
    writer = gateway.client("w")
    assert writer.publish("t", qos=2, id=1, properties=message_expiry(1)) == ["PUBREC #1"]
    gateway.advance(5)
    assert writer.publish("t", qos=2, id=1, dup=True, properties=message_expiry(1)) == ["PUBREC #1"]
    assert writer.pubrel(1) == ["PUBCOMP #1"]
    assert gateway.client("kept", is_clean=False).backlog == []


# ---------------------------------------------------------------- deliveries to clients


def sent(gateway: Gateway, version: int, qos: int, *, properties: bytes = b"") -> Client:
    """Return a client with a session and the unacknowledged delivery 1."""
    client = gateway.client("c", version, is_clean=False, expiry=1000)
    client.subscribe("t", qos)
    gateway.client("w").publish("t", qos=qos, id=9, properties=properties)
    [line] = client.receive()
    assert line.startswith(f"PUBLISH q{qos} #1 t 'hi'")
    return client


def back(gateway: Gateway, client: Client) -> Client:
    """Return the client after a reconnect."""
    client.lose()
    return gateway.client("c", client.write.version, is_clean=False, expiry=1000)


@statements("4.3.2-2 4.3.2-3", "4.3.2-1")
def test_a_qos_1_delivery_is_in_flight_until_puback(gateway: Gateway, version: int) -> None:
    client = sent(gateway, version, 1)
    for _ in range(2):
        client = back(gateway, client)
        assert client.backlog == ["PUBLISH q1 #1 dup t 'hi'"]
    assert client.puback(1) == []
    assert back(gateway, client).backlog == []


@statements("4.3.2-1", "4.3.2-1")
def test_each_qos_1_delivery_has_its_own_identifier(gateway: Gateway, version: int) -> None:
    client = sent(gateway, version, 1)
    writer = gateway.client("w")
    for number in (2, 3):
        writer.publish("t", qos=1, id=9)
        assert client.receive() == [f"PUBLISH q1 #{number} t 'hi'"]


@statements("4.3.3-2 4.3.3-3", "4.3.3-1")
def test_a_qos_2_delivery_is_in_flight_until_pubrec(gateway: Gateway, version: int) -> None:
    client = sent(gateway, version, 2)
    for _ in range(2):
        client = back(gateway, client)
        assert client.backlog == ["PUBLISH q2 #1 dup t 'hi'"]


@statements("4.3.3-4", "4.3.3-1")
def test_a_pubrec_is_answered_with_pubrel_for_its_identifier(gateway: Gateway, version: int) -> None:
    client = gateway.client("c", version)
    client.subscribe("t", 2)
    writer = gateway.client("w")
    for number in range(3):
        writer.publish("t", qos=2, id=number + 1)
    client.receive()
    assert [client.pubrec(number) for number in (2, 3, 1)] == [["PUBREL #2"], ["PUBREL #3"], ["PUBREL #1"]]


@statements("4.3.3-5", "4.3.3-1")
def test_a_pubrel_is_in_flight_until_pubcomp(gateway: Gateway, version: int) -> None:
    client = sent(gateway, version, 2)
    assert client.pubrec(1) == ["PUBREL #1"]
    for _ in range(2):
        client = back(gateway, client)
        assert client.backlog == ["PUBREL #1"]
    assert client.pubcomp(1) == []
    assert back(gateway, client).backlog == []


@statements("4.3.3-6", "4.3.3-1")
def test_a_message_is_not_resent_after_pubrel(gateway: Gateway, version: int) -> None:
    client = sent(gateway, version, 2)
    client.pubrec(1)
    assert client.pubrec(1) == ["PUBREL #1"]
    assert back(gateway, client).backlog == ["PUBREL #1"]


@statements("4.3.3-5 4.3.3-6", "4.3.3-1")
def test_a_message_is_not_resent_after_pubrel_and_a_crash(gateway: Gateway, version: int) -> None:
    client = sent(gateway, version, 2)
    client.pubrec(1)
    after = gateway.crashed().client("c", version, is_clean=False)
    assert after.backlog == ["PUBREL #1"]


@statements("4.3.3-3", "4.3.3-1")
def test_a_delivery_keeps_its_identifier_after_a_crash(gateway: Gateway, version: int) -> None:
    sent(gateway, version, 2)
    after = gateway.crashed().client("c", version, is_clean=False)
    assert after.backlog == ["PUBLISH q2 #1 dup t 'hi'"]
    assert after.pubrec(1) == ["PUBREL #1"]
    assert after.pubcomp(1) == []


@statements("4.3.3-7")
@pytest.mark.parametrize("waited_s", [5, 500])
def test_a_qos_2_delivery_does_not_expire(gateway: Gateway, version: int, waited_s: int) -> None:
    client = sent(gateway, version, 2, properties=message_expiry(10))
    client.lose()
    gateway.advance(waited_s)
    client = gateway.client("c", is_clean=False, expiry=1000)
    left = max(0, 10 - waited_s)
    assert client.backlog == [f"PUBLISH q2 #1 dup t 'hi' MESSAGE_EXPIRY_INTERVAL={left}"]
    assert client.pubrec(1) == ["PUBREL #1"]


@statements("4.3.3-7")
def test_a_qos_2_delivery_does_not_expire_after_a_crash(gateway: Gateway, version: int) -> None:
    sent(gateway, version, 2, properties=message_expiry(10))
    after = gateway.crashed()
    after.advance(500)
    expected = ["PUBLISH q2 #1 dup t 'hi' MESSAGE_EXPIRY_INTERVAL=0"]
    assert after.client("c", is_clean=False).backlog == expected


@statements("4.4.0-2")
@pytest.mark.parametrize("reason", [0x80, 0x83, 0x87, 0x97, 0x99])
def test_a_refused_delivery_counts_as_acknowledged(gateway: Gateway, version: int, reason: int) -> None:
    client = sent(gateway, version, 2)
    assert client.pubrec(1, reason) == []
    client = back(gateway, client)
    assert client.backlog == []
    gateway.client("w").publish("t", b"next", qos=2, id=9)
    [line] = client.receive()
    assert line.endswith("t 'next'")


OUT_OF_TURN = {
    "PUBACK for QoS 2": (2, [FIVE.puback(1)], list(PROTOCOL_ERROR)),
    "PUBREC for QoS 1": (1, [FIVE.pubrec(1)], list(PROTOCOL_ERROR)),
    "PUBACK twice": (1, [FIVE.puback(1), FIVE.puback(1)], []),
    "PUBREC twice": (2, [FIVE.pubrec(1), FIVE.pubrec(1)], ["PUBREL #1", "PUBREL #1"]),
    "PUBCOMP twice": (2, [FIVE.pubrec(1), FIVE.pubcomp(1), FIVE.pubcomp(1)], ["PUBREL #1"]),
    "PUBREC after PUBCOMP": (
        2,
        [FIVE.pubrec(1), FIVE.pubcomp(1), FIVE.pubrec(1)],
        ["PUBREL #1", "PUBREL #1 PACKET_IDENTIFIER_NOT_FOUND"],
    ),
    "PUBCOMP before PUBREC": (2, [FIVE.pubcomp(1), FIVE.pubrec(1)], ["PUBREL #1"]),
    "PUBREC after a refusal": (2, [FIVE.pubrec(1, 0x80), FIVE.pubrec(1)], ["PUBREL #1 PACKET_IDENTIFIER_NOT_FOUND"]),
    "PUBCOMP for QoS 1": (1, [FIVE.pubcomp(1), FIVE.puback(1)], []),
    "another's identifier": (2, [FIVE.pubrec(2)], ["PUBREL #2 PACKET_IDENTIFIER_NOT_FOUND"]),
}


@statements("4.3.3-4 4.3.3-5", "4.3.3-1")
@pytest.mark.parametrize("case", OUT_OF_TURN)
def test_unexpected_acknowledgements_are_answered_as_specified(gateway: Gateway, version: int, case: str) -> None:
    qos, answers, received = OUT_OF_TURN[case]
    if version == 4:  # which has no reasons
        answers = [answer if len(answer) == 4 else answer[:1] + b"\x02" + answer[2:4] for answer in answers]
        if case == "PUBREC after a refusal":
            received = ["PUBREL #1", "PUBREL #1"]
    client = sent(gateway, version, qos)
    assert client.request(*answers) == worded(version, *received)


@statements("2.2.1-5", "2.3.1-6")
def test_packet_identifiers_of_both_directions_are_independent(gateway: Gateway, version: int) -> None:
    client = sent(gateway, version, 2)
    other = gateway.client("other")
    other.subscribe("x", 0)
    assert client.publish("x", qos=2, id=1) == ["PUBREC #1"]
    assert client.pubrec(1) == ["PUBREL #1"]
    assert client.pubrel(1) == ["PUBCOMP #1"]
    assert client.pubcomp(1) == []
