"""PUBACK, PUBREC, PUBREL and PUBCOMP: flags, reasons, properties and sizes (3.4 to 3.7)."""

import pytest

from tests.conformance.mqtt.tables import CLOSED, MALFORMED, PROTOCOL_ERROR, Row, rows, statements
from tests.protocols.mqtt.dialogue import Client, Gateway
from tests.protocols.mqtt.packets import FIVE, maximum_packet_size, packet, reason_string, user_property

#: The reasons of tables 3-4 to 3-7.
RECEIVED = (0x00, 0x10, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99)
RELEASED = (0x00, 0x92)

WRONG: list[Row] = [
    row
    for first, statement in ((0x60, "PUBREL"), (0x61, "PUBREL"), (0x64, "PUBREL"), (0x6A, "PUBREL"))
    for row in rows(
        f"{statement} with {first:#x}",
        "3.6.1-1",
        "3.6.1-1",
        lambda w, first=first: w.ack(first, 1),  # type: ignore[misc]
        *MALFORMED,
    )
]
WRONG += [
    row
    for first, id in ((0x40, "3.4.2-1"), (0x50, "3.5.2-1"), (0x62, "3.6.2-1"), (0x70, "3.7.2-1"))
    for reason in (0x01, 0x11, 0x55, 0x8E, *((0x92,) if first < 0x60 else (0x10, 0x80)))
    for row in rows(
        f"{first:#x} with {reason:#x}",
        id,
        "",
        lambda w, first=first, reason=reason: w.ack(first, 1, reason),  # type: ignore[misc]
        *PROTOCOL_ERROR,
    )
]
WRONG += [
    *rows("a PUBACK cut short", "4.13.1-1", "4.8.0-1", lambda _: packet(0x40, b"\1"), *MALFORMED),
    *rows("an empty PUBREL", "4.13.1-1", "4.8.0-1", lambda _: packet(0x62), *MALFORMED),
    *rows("a PUBACK that is too long", "", "4.8.0-1", lambda _: packet(0x40, b"\0\1\0"), CLOSED),
    *rows("a PUBACK with bytes behind", "4.13.1-1", "", lambda _: packet(0x40, b"\0\1\0\0x"), *MALFORMED),
]  # fmt: skip


@pytest.mark.parametrize(("version", "sent", "received"), WRONG)
def test_an_invalid_acknowledgement_ends_the_connection(
    gateway: Gateway, version: int, sent: bytes, received: list[str]
) -> None:
    assert gateway.client("c", version).request(sent) == received


def reader_of(gateway: Gateway, qos: int) -> Client:
    """Return a client with the unacknowledged delivery 1."""
    reader = gateway.client("r")
    reader.subscribe("t", qos)
    gateway.client("w").publish("t", qos=qos, id=1)
    assert reader.receive() == [f"PUBLISH q{qos} #1 t 'hi'"]
    return reader


@statements("3.4.2-1")
@pytest.mark.parametrize("reason", [None, *RECEIVED])
@pytest.mark.parametrize("properties", [None, b"", reason_string("why") + user_property("a", "b")])
def test_the_reasons_and_properties_of_a_puback(
    gateway: Gateway, version: int, reason: int | None, properties: bytes | None
) -> None:
    reader = reader_of(gateway, 1)
    assert reader.request(FIVE.puback(1, reason, properties), FIVE.pingreq()) == ["PINGRESP"]


@statements("3.5.2-1 4.3.3-4")
@pytest.mark.parametrize("reason", [None, *RECEIVED])
@pytest.mark.parametrize("properties", [None, b"", reason_string("why") + user_property("a", "b")])
def test_the_reasons_and_properties_of_a_pubrec(
    gateway: Gateway, version: int, reason: int | None, properties: bytes | None
) -> None:
    reader = reader_of(gateway, 2)
    assert reader.request(FIVE.pubrec(1, reason, properties)) == (["PUBREL #1"] if (reason or 0) < 0x80 else [])


@statements("3.6.2-1 3.7.2-1")
@pytest.mark.parametrize("reason", [None, *RELEASED])
@pytest.mark.parametrize("properties", [None, b"", reason_string("why") + user_property("a", "b")])
def test_the_reasons_and_properties_of_pubrel_and_pubcomp(
    gateway: Gateway, version: int, reason: int | None, properties: bytes | None
) -> None:
    reader = reader_of(gateway, 2)
    assert reader.pubrec(1) == ["PUBREL #1"]
    assert reader.request(FIVE.pubcomp(1, reason, properties), FIVE.pingreq()) == ["PINGRESP"]
    assert reader.publish("x", qos=2, id=1) == ["PUBREC #1 NO_MATCHING_SUBSCRIBERS"]
    assert reader.request(FIVE.pubrel(1, reason, properties)) == ["PUBCOMP #1"]


@statements("3.6.2-1 3.7.2-1")
def test_an_acknowledgement_of_an_unknown_identifier_is_answered_with_its_reason(
    gateway: Gateway, version: int
) -> None:
    client = gateway.client("c")
    assert client.pubrel(7) == ["PUBCOMP #7 PACKET_IDENTIFIER_NOT_FOUND"]
    assert client.pubrec(7) == ["PUBREL #7 PACKET_IDENTIFIER_NOT_FOUND"]
    assert client.puback(7) == []
    assert client.pubcomp(7) == []


@statements("3.4.2-2 3.4.2-3 3.5.2-2 3.5.2-3 3.6.2-2 3.6.2-3 3.7.2-2 3.7.2-3")
def test_acknowledgements_omit_properties_that_exceed_the_maximum_packet_size(version: int) -> None:
    gateway = Gateway(disconnect_on_unauthorized=False)
    gateway.add_user("mute", "mute", may=(".*", "^mqtt-subscription", ".*"))
    properties = maximum_packet_size(6)
    client = gateway.client("c", username="mute", password=b"mute", properties=properties)
    sent = FIVE.publish("t", qos=1, id=1) + FIVE.publish("t", qos=2, id=2) + FIVE.pubrel(3) + FIVE.pubrec(4)
    client.machine.receive(sent)
    received = client.receive_frames()
    assert sorted(packet.line for packet in received) == [
        "PUBACK #1 NOT_AUTHORIZED",
        "PUBCOMP #3 PACKET_IDENTIFIER_NOT_FOUND",
        "PUBREC #2 NOT_AUTHORIZED",
        "PUBREL #4 PACKET_IDENTIFIER_NOT_FOUND",
    ]
    assert all(packet.size <= 6 and not packet.properties for packet in received)
