"""SUBSCRIBE and SUBACK (3.8, 3.9)."""

import pytest

from tests.conformance.mqtt.tables import CLOSED, MALFORMED, PROTOCOL_ERROR, Row, rows, statements, worded
from tests.protocols.mqtt.dialogue import Gateway
from tests.protocols.mqtt.packets import Will, maximum_packet_size, options, packet, subscription_identifier, text

WRONG: list[Row] = [
    *rows("flags 0000", "3.8.1-1", "3.8.1-1", lambda w: w.subscribe(("t", 0), first_byte=0x80), *MALFORMED),
    *rows("flags 0011", "3.8.1-1", "3.8.1-1", lambda w: w.subscribe(("t", 0), first_byte=0x83), *MALFORMED),
    *rows("flags 1010", "3.8.1-1", "3.8.1-1", lambda w: w.subscribe(("t", 0), first_byte=0x8A), *MALFORMED),
    *rows("a filter that is not UTF-8", "3.8.3-1", "3.8.3-1", lambda w: w.subscribe((b"\xc3(", 0)), *MALFORMED),
    *rows("a filter that is not UTF-8 after a valid one", "3.8.3-1", "3.8.3-1",
          lambda w: w.subscribe(("t", 0), (b"\xff", 0)), *MALFORMED),
    *rows("no filter", "3.8.3-2", "3.8.3-3", lambda w: w.subscribe(), *PROTOCOL_ERROR),
    *rows("a filter without options", "3.8.3-2", "3.8.3-3",
          lambda w: packet(0x82, b"\0\1" + w.block(b"") + text("t")), *MALFORMED),
    *rows("a filter cut short", "3.8.3-2", "3.8.3-3",
          lambda w: packet(0x82, b"\0\1" + w.block(b"") + b"\0\5t"), *MALFORMED),
    *rows("QoS 3", "3.8.3-5", "3.8.3-4", lambda w: w.subscribe(("t", 3)), *PROTOCOL_ERROR),
    *rows("a reserved bit", "3.8.3-5", "3.8.3-4", lambda w: w.subscribe(("t", 0x40)), *MALFORMED),
    *rows("the other reserved bit", "3.8.3-5", "3.8.3-4", lambda w: w.subscribe(("t", 0x80)), *MALFORMED),
    *rows("options of 5.0", "", "3.8.3-4", lambda w: w.subscribe(("t", 0x04)), CLOSED),
    *rows("Retain Handling 3", "3.8.3-5", "", lambda w: w.subscribe(("t", 0x30)), *PROTOCOL_ERROR),
    *rows("No Local of a shared subscription", "3.8.3-4", "",
          lambda w: w.subscribe(("$share/g/t", options(0, no_local=True))), *PROTOCOL_ERROR),
    *rows("a subscription identifier of 0", "4.13.1-1", "",
          lambda w: w.subscribe(("t", 0), properties=subscription_identifier(0)), *PROTOCOL_ERROR),
    *rows("two subscription identifiers", "4.13.1-1", "",
          lambda w: w.subscribe(("t", 0), properties=subscription_identifier(1) * 2), *PROTOCOL_ERROR),
]  # fmt: skip


@pytest.mark.parametrize(("version", "sent", "received"), WRONG)
def test_an_invalid_subscribe_ends_the_connection(
    gateway: Gateway, version: int, sent: bytes, received: list[str]
) -> None:
    assert gateway.client("c", version).request(sent) == received


TAKEN: list[Row] = [
    *rows("QoS 0", "3.8.4-1 3.8.4-7", "3.8.4-1 3.8.4-5", lambda w: w.subscribe(("t", 0)), "SUBACK #1 0"),
    *rows("QoS 1", "3.8.4-1 3.8.4-7", "3.8.4-1 3.8.4-5", lambda w: w.subscribe(("t", 1)), "SUBACK #1 1"),
    *rows("QoS 2", "3.8.4-1 3.8.4-7", "3.8.4-1 3.8.4-5", lambda w: w.subscribe(("t", 2)), "SUBACK #1 2"),
    *rows("wildcards", "3.8.4-7", "3.8.3-2", lambda w: w.subscribe(("a/+/#", 1)), "SUBACK #1 1"),
    *rows("identifier", "3.8.4-2", "3.8.4-2", lambda w: w.subscribe(("t", 0), id=0x8000), "SUBACK #32768 0"),
    *rows("several", "3.8.4-5 3.8.4-6 3.9.3-1", "3.8.4-4 3.8.4-5 3.9.3-1",
          lambda w: w.subscribe(("a", 2), ("b", 0), ("c", 1), ("a", 1)), "SUBACK #1 2 0 1 1"),
    *rows("one of them invalid", "3.8.4-6 3.8.4-7 3.9.3-1 3.9.3-2", "",
          lambda w: w.subscribe(("a", 2), ("b#", 0), ("c", 1)), "SUBACK #1 2 8f 1"),
    *rows("one of them invalid", "", "3.8.4-5 3.9.3-1 3.9.3-2",
          lambda w: w.subscribe(("a", 2), ("b#", 0), ("c", 1)), "SUBACK #1 2 80 1"),
    *rows("before any message", "3.8.4-1", "3.8.4-1", lambda w: w.subscribe(("t", 0)) + w.publish("t"),
          "SUBACK #1 0", "PUBLISH t 'hi'"),
]  # fmt: skip


@pytest.mark.parametrize(("version", "sent", "received"), TAKEN)
def test_a_suback_has_a_code_for_each_filter(gateway: Gateway, version: int, sent: bytes, received: list[str]) -> None:
    assert gateway.client("c", version).request(sent) == received


@statements("3.9.3-2 3.8.4-7", "3.9.3-2 3.8.4-5")
def test_a_subscription_without_permission_is_refused_and_others_are_not(gateway: Gateway, version: int) -> None:
    gateway.add_user("deaf", "deaf", may=(".*", ".*", "^mqtt-subscription-.*qos0$|^amq"))
    client = gateway.client("c", version, username="deaf", password=b"deaf")
    received = client.request(client.write.subscribe(("a", 0), ("b", 1), ("c", 0)))
    assert received == ["SUBACK #1 0 87 0" if version == 5 else "SUBACK #1 0 80 0"]
    gateway.client("w").publish("b", qos=1, id=1)
    assert client.receive() == []


@statements("3.8.4-5", "3.8.4-4")
def test_each_filter_is_a_separate_subscription(gateway: Gateway, version: int) -> None:
    client, writer = gateway.client("c", version), gateway.client("w")
    client.request(client.write.subscribe(("a", 0), ("b", 1), ("c", 2)))
    for number, topic in enumerate("abc"):
        writer.publish(topic, qos=2, id=number + 1)
    assert client.receive() == ["PUBLISH a 'hi'", "PUBLISH q1 #1 b 'hi'", "PUBLISH q2 #2 c 'hi'"]


@statements("3.8.4-3", "3.8.4-3")
@pytest.mark.parametrize(("first", "second"), [(0, 1), (1, 0), (2, 1), (0, 2), (1, 1)])
def test_a_subscription_to_the_same_filter_replaces_the_earlier_one(
    gateway: Gateway, version: int, first: int, second: int
) -> None:
    client, writer = gateway.client("c", version), gateway.client("w")
    client.subscribe("t/+", first)
    client.subscribe("t/+", second)
    writer.publish("t/1", qos=2, id=1)
    assert client.receive() == [f"PUBLISH q{second} #1 t/1 'hi'" if second else "PUBLISH t/1 'hi'"]
    client.unsubscribe("t/+")
    writer.publish("t/1", qos=2, id=2)
    assert client.receive() == []


@statements("3.8.4-4", "3.8.4-3")
@pytest.mark.parametrize(("first", "second"), [(0, 1), (1, 0), (1, 2)])
def test_replacing_a_subscription_loses_no_message(gateway: Gateway, version: int, first: int, second: int) -> None:
    client, writer = gateway.client("c", version), gateway.client("w")
    client.subscribe("t", first)
    for number in range(10):
        writer.machine.receive(writer.write.publish("t", b"%d" % number, qos=1, id=number + 1))
        client.machine.receive(client.write.subscribe(("t", (first, second)[number % 2])))
    payloads = [line.split()[-1] for line in client.receive() if line.startswith("PUBLISH")]
    assert sorted(payloads) == [f"'{number}'" for number in range(10)]


@statements("3.8.4-8", "3.8.4-6")
@pytest.mark.parametrize("published", [0, 1, 2])
@pytest.mark.parametrize("granted", [0, 1, 2])
def test_a_delivery_has_the_lower_of_both_qos(gateway: Gateway, version: int, published: int, granted: int) -> None:
    client = gateway.client("c", version)
    client.subscribe("t", granted)
    gateway.client("w").publish("t", qos=published, id=1)
    qos = min(published, granted)
    assert client.receive() == [f"PUBLISH q{qos} #1 t 'hi'" if qos else "PUBLISH t 'hi'"]


# ---------------------------------------------------------------- no local


@statements("3.8.3-3")
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_no_local_excludes_the_client_s_own_messages(gateway: Gateway, version: int, qos: int) -> None:
    client, other = gateway.client("c"), gateway.client("other")
    client.subscribe("t", options(qos, no_local=True))
    other.subscribe("t", 0)
    answer = {0: [], 1: ["PUBACK #1"], 2: ["PUBREC #1"]}[qos]
    assert client.publish("t", qos=qos, id=1) == answer
    assert other.receive() == ["PUBLISH t 'hi'"]
    other.publish("t", b"yours", qos=qos, id=1)
    assert client.receive() == [f"PUBLISH q{qos} #1 t 'yours'" if qos else "PUBLISH t 'yours'"]


@statements("3.8.3-3")
def test_no_local_applies_to_one_subscription_only(gateway: Gateway, version: int) -> None:
    client = gateway.client("c")
    client.subscribe("t", options(1, no_local=True), properties=subscription_identifier(1))
    client.subscribe("+", 0, properties=subscription_identifier(2))
    assert client.publish("t", qos=1, id=1) == ["PUBLISH t 'hi' SUBSCRIPTION_IDENTIFIER=2", "PUBACK #1"]


@statements("3.8.3-3")
def test_no_local_applies_to_the_client_and_not_to_the_connection(gateway: Gateway, version: int) -> None:
    client = gateway.client("c", is_clean=False, expiry=100)
    client.subscribe("t", options(1, no_local=True))
    client.publish("t", qos=1, id=1)
    client.lose()
    assert gateway.client("c", is_clean=False).backlog == []


@statements("3.8.3-3")
def test_a_will_is_its_client_s_own_message(gateway: Gateway, version: int) -> None:
    client = gateway.client("c", is_clean=False, expiry=100, will=Will("t", qos=1))
    client.subscribe("t", options(1, no_local=True))
    client.lose()
    assert gateway.client("c", is_clean=False).backlog == []


# ---------------------------------------------------------------- SUBACK


@statements("3.9.2-1 3.9.2-2")
def test_a_suback_omits_properties_that_exceed_the_maximum_packet_size(gateway: Gateway, version: int) -> None:
    client = gateway.client("c", properties=maximum_packet_size(12))
    client.machine.receive(client.write.subscribe(("t#", 0)))
    [received] = client.receive_frames()
    assert (received.line, received.properties, received.size) == ("SUBACK #1 8f", [], 6)


@statements("3.8.4-1", "3.8.4-1")
def test_a_suback_is_sent_once_the_subscription_is_durable(gateway: Gateway, version: int) -> None:
    client = gateway.client("c", version, is_clean=False, expiry=100)
    client.machine.receive(client.write.subscribe(("t", 1)))
    assert client.receive_now() == []
    assert client.receive() == worded(version, "SUBACK #1 1")
