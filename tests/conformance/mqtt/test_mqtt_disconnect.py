"""DISCONNECT in both directions (3.14)."""

import pytest

from gateway_mqtt.codec.properties import PropertyId
from tests.conformance.mqtt.tables import CLOSED, MALFORMED, PROTOCOL_ERROR, Row, rows, statements, worded
from tests.protocols.mqtt.dialogue import Gateway
from tests.protocols.mqtt.packets import (
    FIVE,
    authentication,
    maximum_packet_size,
    packet,
    reason_string,
    user_property,
)

#: The reasons of Table 3-10 for clients.
REASONS = (0x00, 0x04, 0x80, 0x81, 0x82, 0x83, 0x90, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99)

GOODBYES: list[Row] = [
    row
    for reason in REASONS
    for row in rows(f"reason {reason:#04x}", "3.14.2-1", "", lambda w, reason=reason: w.disconnect(reason), CLOSED)  # type: ignore[misc]
]
GOODBYES += [
    *rows("nothing", "3.14.2-1", "3.14.1-1", lambda w: w.disconnect(), CLOSED),
    *rows("words", "3.14.2-1", "", lambda w: w.disconnect(0, reason_string("bye") + user_property("a", "b")), CLOSED),
    *rows("reserved flags", "3.14.1-1", "3.14.1-1", lambda _: packet(0xE1), *MALFORMED),
    *rows("all flags", "3.14.1-1", "3.14.1-1", lambda _: packet(0xEF), *MALFORMED),
    *rows("a body", "", "3.14.1-1", lambda _: packet(0xE0, b"\0"), CLOSED),
    *rows("a reason of the server", "3.14.2-1", "", lambda w: w.disconnect(0x8E), *PROTOCOL_ERROR),
    *rows("a reason of another packet", "3.14.2-1", "", lambda w: w.disconnect(0x10), *PROTOCOL_ERROR),
    *rows("an unassigned reason", "3.14.2-1", "", lambda w: w.disconnect(0x55), *PROTOCOL_ERROR),
    *rows("what follows", "3.14.4-1", "3.14.4-2", lambda w: w.disconnect() + w.pingreq() + w.publish("t"), CLOSED),
]


@pytest.mark.parametrize(("version", "sent", "received"), GOODBYES)
def test_a_disconnect_of_a_client_closes_the_connection(
    gateway: Gateway, version: int, sent: bytes, received: list[str]
) -> None:
    assert gateway.client("c", version).request(sent) == received


@statements("3.14.4-1", "3.14.4-2")
def test_a_publish_after_disconnect_is_ignored(gateway: Gateway, version: int) -> None:
    reader, client = gateway.client("r"), gateway.client("c", version)
    reader.subscribe("t")
    client.request(client.write.publish("t", b"last"), client.write.disconnect(), client.write.publish("t", b"later"))
    assert reader.receive() == ["PUBLISH t 'last'"]


@statements("3.14.0-1")
def test_the_server_sends_no_disconnect_before_connack(gateway: Gateway, version: int) -> None:
    for sent in (FIVE.pingreq(), FIVE.connect(flags=1), FIVE.connect(properties=authentication("nosuch"))):
        received = gateway.new_client().request(sent)
        assert received[-1] == CLOSED
        assert not [line for line in received if line.startswith("DISCONNECT")]


@statements("3.14.2-1 3.14.2-2 3.14.4-2")
@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (packet(0xD0), "PROTOCOL_ERROR"),
        (packet(0x82), "MALFORMED_PACKET"),
        (FIVE.publish("+"), "TOPIC_NAME_INVALID"),
        (FIVE.publish("t", properties=b"\x23\0\0"), "TOPIC_ALIAS_INVALID"),
        (FIVE.publish("t", b"\xff", properties=b"\x01\x01"), "PAYLOAD_FORMAT_INVALID"),
        (b"\x30\xff\xff\xff\x7f", "PACKET_TOO_LARGE"),
        (FIVE.publish("$SYS/broker/uptime"), "NOT_AUTHORIZED"),
    ],
)
def test_a_disconnect_of_the_server_has_a_reason_of_the_table(
    gateway: Gateway, version: int, sent: bytes, reason: str
) -> None:
    client = gateway.client("c", expiry=100)
    client.machine.receive(sent)
    disconnect, closed = client.receive_frames()
    assert (disconnect.line, closed.line) == (f"DISCONNECT {reason}", CLOSED)
    assert {key for key, _ in disconnect.properties} == {PropertyId.REASON_STRING}


@statements("3.14.4-1 3.14.4-2")
@pytest.mark.parametrize(
    ("reason", "line"), [("node shutdown", "SERVER_SHUTTING_DOWN"), ("by hand", "ADMINISTRATIVE_ACTION")]
)
def test_the_server_sends_nothing_after_its_disconnect(gateway: Gateway, version: int, reason: str, line: str) -> None:
    client = gateway.client("c")
    client.subscribe("t")
    client.force_close(reason)
    gateway.client("w").publish("t")
    assert client.request(FIVE.pingreq()) == [f"DISCONNECT {line}", CLOSED]


@statements("", "4.8.0-1")
def test_a_server_of_3_1_1_closes_without_disconnect(gateway: Gateway, version: int) -> None:
    client = gateway.client("c", version)
    client.force_close("node shutdown")
    assert client.receive() == worded(version, CLOSED)


@statements("3.14.2-3 3.14.2-4")
@pytest.mark.parametrize(("size", "strings"), [(1000, 1), (20, 0), (5, 0)])
def test_a_reason_string_that_exceeds_the_maximum_packet_size_is_omitted(
    gateway: Gateway, version: int, size: int, strings: int
) -> None:
    client = gateway.client("c", properties=maximum_packet_size(size))
    client.machine.receive(FIVE.publish("a/topic/with/a/+/in/it"))
    disconnect, _ = client.receive_frames()
    assert disconnect.line == "DISCONNECT TOPIC_NAME_INVALID"
    assert disconnect.size <= size
    assert len(disconnect.all(PropertyId.REASON_STRING)) == strings
    assert not disconnect.all(PropertyId.USER_PROPERTY)


@statements("3.14.2-3")
def test_a_reason_string_cuts_long_text_of_the_client(gateway: Gateway, version: int) -> None:
    client = gateway.client("c")
    client.machine.receive(FIVE.publish("+" * 65_535))
    disconnect, _ = client.receive_frames()
    assert disconnect.line == "DISCONNECT TOPIC_NAME_INVALID"
    assert disconnect.size < 1000
