"""UNSUBSCRIBE and UNSUBACK (3.10, 3.11)."""

import pytest

from tests.conformance.mqtt.tables import MALFORMED, PROTOCOL_ERROR, Row, rows, statements
from tests.protocols.mqtt.dialogue import Gateway
from tests.protocols.mqtt.packets import maximum_packet_size, packet

WRONG: list[Row] = [
    *rows("flags 0000", "3.10.1-1", "3.10.1-1", lambda w: w.unsubscribe("t", first_byte=0xA0), *MALFORMED),
    *rows("flags 0110", "3.10.1-1", "3.10.1-1", lambda w: w.unsubscribe("t", first_byte=0xA6), *MALFORMED),
    *rows("a filter that is not UTF-8", "3.10.3-1", "3.10.3-1", lambda w: w.unsubscribe(b"\xff"), *MALFORMED),
    *rows("bytes after the last filter", "3.10.3-1", "3.10.3-1",
          lambda w: packet(0xA2, b"\0\1" + w.block(b"") + b"\0\1t\0"), *MALFORMED),
    *rows("no filter", "3.10.3-2", "3.10.3-2", lambda w: w.unsubscribe(), *PROTOCOL_ERROR),
]  # fmt: skip


@pytest.mark.parametrize(("version", "sent", "received"), WRONG)
def test_an_invalid_unsubscribe_ends_the_connection(
    gateway: Gateway, version: int, sent: bytes, received: list[str]
) -> None:
    assert gateway.client("c", version).request(sent) == received


def unsuback(version: int, id: int, *codes: str) -> list[str]:
    """Return an UNSUBACK; before 5.0 it has no codes."""
    return [" ".join([f"UNSUBACK #{id}", *(codes if version == 5 else ())])]


@statements("3.10.4-4 3.10.4-5 3.11.3-2", "3.10.4-4 3.10.4-5")
def test_an_unsubscribe_is_answered_with_or_without_a_subscription(gateway: Gateway, version: int) -> None:
    client = gateway.client("c", version)
    client.subscribe("t")
    assert client.unsubscribe("t", id=0x1234) == unsuback(version, 0x1234, "0")
    assert client.unsubscribe("t", id=0x1235) == unsuback(version, 0x1235, "11")
    assert client.unsubscribe("nosuch", id=0x1236) == unsuback(version, 0x1236, "11")
    assert client.unsubscribe("no#filter", id=0x1237) == unsuback(version, 0x1237, "8f")


@statements("3.10.4-1", "3.10.4-1")
@pytest.mark.parametrize("filter", ["a/+", "+/b", "#", "a/#", "A/b", "a/b/", "a/b ", "/a/b"])
def test_filters_are_compared_character_by_character(gateway: Gateway, version: int, filter: str) -> None:
    client, writer = gateway.client("c", version), gateway.client("w")
    client.subscribe("a/b")
    assert client.unsubscribe(filter) == unsuback(version, 2, "11")
    writer.publish("a/b")
    assert client.receive() == ["PUBLISH a/b 'hi'"]


@statements("3.10.4-1 3.10.4-2", "3.10.4-1 3.10.4-2")
@pytest.mark.parametrize("filter", ["a/b", "a/+", "#", "+/b", "a/#"])
@pytest.mark.parametrize("qos", [0, 1])
def test_an_unsubscribed_filter_delivers_nothing_more(gateway: Gateway, version: int, filter: str, qos: int) -> None:
    client, writer = gateway.client("c", version), gateway.client("w")
    client.subscribe(filter, qos)
    client.subscribe("other", qos)
    assert client.unsubscribe(filter) == unsuback(version, 2, "0")
    writer.publish("a/b", qos=1, id=1)
    assert client.receive() == []


@statements("3.10.4-2", "3.10.4-2")
def test_other_subscriptions_stay_in_effect(gateway: Gateway, version: int) -> None:
    client, writer = gateway.client("c", version), gateway.client("w")
    for filter in ("a/b", "a/+", "#"):
        client.subscribe(filter, 1)
    client.unsubscribe("a/+")
    writer.publish("a/b", qos=1, id=1)
    assert client.receive() == ["PUBLISH q1 #1 a/b 'hi'"]
    client.unsubscribe("a/b", "#")
    writer.publish("a/b", qos=1, id=2)
    assert client.receive() == []


@statements("3.10.4-3", "3.10.4-3")
@pytest.mark.parametrize("qos", [1, 2])
def test_a_started_delivery_is_completed_after_unsubscribe(gateway: Gateway, version: int, qos: int) -> None:
    client = gateway.client("c", version, is_clean=False, expiry=100)
    client.subscribe("t", qos)
    gateway.client("w").publish("t", qos=qos, id=1)
    assert client.receive() == [f"PUBLISH q{qos} #1 t 'hi'"]
    client.unsubscribe("t")
    client.lose()
    back = gateway.client("c", version, is_clean=False)
    assert back.backlog == [f"PUBLISH q{qos} #1 dup t 'hi'"]
    if qos == 1:
        assert back.puback(1) == []
    else:
        assert back.pubrec(1) == ["PUBREL #1"]
        assert back.pubcomp(1) == []


@statements("3.10.4-6 3.11.3-1 3.11.3-2", "3.10.4-6")
def test_an_unsuback_has_a_code_for_each_filter_in_order(gateway: Gateway, version: int) -> None:
    client, writer = gateway.client("c", version), gateway.client("w")
    client.request(client.write.subscribe(("a", 0), ("b", 1), ("c", 0)))
    assert client.unsubscribe("x", "b", "y", "a", "a") == unsuback(version, 2, "11", "0", "11", "0", "11")
    for topic in "abc":
        writer.publish(topic)
    assert client.receive() == ["PUBLISH c 'hi'"]


@statements("3.11.2-1 3.11.2-2")
def test_an_unsuback_omits_properties_that_exceed_the_maximum_packet_size(gateway: Gateway, version: int) -> None:
    client = gateway.client("c", properties=maximum_packet_size(12))
    client.machine.receive(client.write.unsubscribe("t"))
    [received] = client.receive_frames()
    assert (received.line, received.properties, received.size) == ("UNSUBACK #2 11", [], 6)


@statements("3.10.4-4", "3.10.4-4")
def test_an_unsuback_is_sent_once_the_change_is_durable(gateway: Gateway, version: int) -> None:
    client = gateway.client("c", version, is_clean=False, expiry=100)
    client.subscribe("t", 1)
    client.machine.receive(client.write.unsubscribe("t"))
    assert client.receive_now() == []
    assert client.receive() == unsuback(version, 2, "0")
    after = gateway.crashed()
    after.client("w").publish("t", qos=1, id=1)
    assert after.client("c", version, is_clean=False).backlog == []
