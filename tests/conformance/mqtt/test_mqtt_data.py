"""Chapters 1 and 2, and the end of connections by errors: strings, numbers, flags, packet identifiers, properties."""

from itertools import product

import pytest

from tests.conformance.mqtt.tables import CLOSED, MALFORMED, NOT_A_TOPIC, PROTOCOL_ERROR, Row, rows, statements, worded
from tests.protocols.mqtt.dialogue import Gateway
from tests.protocols.mqtt.packets import (
    FIVE,
    Writer,
    authentication,
    content_type,
    message_expiry,
    packet,
    reason_string,
    response_topic,
    session_expiry,
    text,
    topic_alias,
    user_property,
    will_delay,
)

# ---------------------------------------------------------------- strings

#: Invalid UTF-8 (RFC 3629), and U+0000.
BAD_STRINGS = {
    "a byte that starts no character": b"a\xff",
    "a character cut short": b"a\xe2\x82",
    "an overlong character": b"a\xc0\xaf",
    "a surrogate": b"a\xed\xa0\x80",
    "a code point beyond Unicode": b"a\xf4\x90\x80\x80",
}


def in_a_topic(write: Writer, bad: bytes) -> bytes:
    return write.publish(bad)


def in_a_filter(write: Writer, bad: bytes) -> bytes:
    return write.subscribe((bad, 0))


def in_an_unsubscribe(write: Writer, bad: bytes) -> bytes:
    return write.unsubscribe(bad)


EVERYWHERE = (in_a_topic, in_a_filter, in_an_unsubscribe)

IN_PROPERTIES = {
    "a response topic": response_topic,
    "a content type": content_type,
    "the name of a user property": lambda bad: b"\x26" + text(bad) + text("value"),
    "the value of a user property": lambda bad: b"\x26" + text("name") + text(bad),
}

STRINGS: list[Row] = [
    row
    for (what, bad), place in product(BAD_STRINGS.items(), EVERYWHERE)
    for row in rows(
        f"{what} {place.__name__}",
        "1.5.4-1",
        "1.5.3-1",
        lambda write, place=place, bad=bad: place(write, bad),  # type: ignore[misc]
        *MALFORMED,
    )
]
STRINGS += [
    row
    for place in EVERYWHERE
    for row in rows(
        f"U+0000 {place.__name__}",
        "1.5.4-2",
        "1.5.3-2",
        lambda write, place=place: place(write, b"a\0b"),  # type: ignore[misc]
        *MALFORMED,
    )
]
STRINGS += [
    row
    for (what, bad), (where, spoilt) in product(BAD_STRINGS.items(), IN_PROPERTIES.items())
    for row in rows(
        f"{what} in {where}",
        "1.5.7-1 1.5.4-1" if "user" in where else "1.5.4-1",
        "",
        lambda write, spoilt=spoilt, bad=bad: write.publish("t", properties=spoilt(bad)),  # type: ignore[misc]
        *MALFORMED,
    )
]
STRINGS += [
    row
    for where, spoilt in IN_PROPERTIES.items()
    for row in rows(
        f"U+0000 in {where}",
        "1.5.7-1 1.5.4-2" if "user" in where else "1.5.4-2",
        "",
        lambda write, spoilt=spoilt: write.publish("t", properties=spoilt(b"a\0b")),  # type: ignore[misc]
        *MALFORMED,
    )
]


@pytest.mark.parametrize(("version", "sent", "received"), STRINGS)
def test_an_invalid_string_ends_the_connection(
    gateway: Gateway, version: int, sent: bytes, received: list[str]
) -> None:
    assert gateway.client("c", version).request(sent) == received


@statements("1.5.4-3", "1.5.3-3")
def test_a_byte_order_mark_is_an_ordinary_character(gateway: Gateway, version: int) -> None:
    reader, writer = gateway.client("r", version), gateway.client("w", version)
    reader.subscribe("\ufefft\ufeff")
    reader.subscribe("t")
    writer.publish("\ufefft\ufeff", b"marked")
    writer.publish("t", b"plain")
    assert reader.receive() == ["PUBLISH \ufefft\ufeff 'marked'", "PUBLISH t 'plain'"]


# ---------------------------------------------------------------- numbers

PADDED: list[Row] = [
    *rows("the length of properties", "1.5.5-1", "", lambda _: packet(0x30, text("t") + b"\x80\x00hi"), *MALFORMED),
    *rows("a subscription identifier", "1.5.5-1", "",
          lambda _: packet(0x82, b"\0\1" + b"\x03\x0b\x81\x00" + text("t") + b"\0"), *MALFORMED),
    *rows("a length of five bytes", "1.5.5-1", "", lambda _: packet(0x30, text("t") + b"\x80\x80\x80\x80\x01"),
          *MALFORMED),
    *rows("a remaining length of two bytes", "1.5.5-1", "", lambda _: b"\xc0\x80\x00", *MALFORMED),
    *rows("a remaining length of four bytes", "1.5.5-1", "",
          lambda _: b"\x82\x87\x80\x80\x00" + b"\0\1" + b"\0" + text("t") + b"\0", *MALFORMED),
    *rows("a remaining length of five bytes", "4.13.1-1", "4.8.0-1", lambda _: b"\xc0\x80\x80\x80\x80\x01",
          *MALFORMED),
]  # fmt: skip


@pytest.mark.parametrize(("version", "sent", "received"), PADDED)
def test_a_number_in_too_many_bytes_ends_the_connection(
    gateway: Gateway, version: int, sent: bytes, received: list[str]
) -> None:
    assert gateway.client("c", version).request(sent) == received


@statements("1.5.5-1")
def test_the_remaining_length_of_a_connect_in_too_many_bytes_is_refused(gateway: Gateway, version: int) -> None:
    new_client = gateway.new_client(version)
    connect = new_client.write.connect("c")
    padded = connect[:1] + bytes((connect[1] | 0x80, 0)) + connect[2:]
    refused = ["CONNACK MALFORMED_PACKET", "closed"]
    assert [line.partition(" REASON_STRING")[0] for line in new_client.request(padded)][:2] == (
        refused if version == 5 else ["CONNACK"]
    )


def test_before_5_0_a_number_may_take_too_many_bytes(gateway: Gateway) -> None:
    assert gateway.client("c", 4).request(b"\xc0\x80\x00") == ["PINGRESP"]


@statements("1.5.5-1")
@pytest.mark.parametrize("size", [0, 1, 120, 122, 123, 124, 126, 16_375, 16_380, 16_384, 2_097_145, 2_097_150])
def test_remaining_lengths_are_encoded_in_as_few_bytes_as_possible(gateway: Gateway, version: int, size: int) -> None:
    client = gateway.client("c", version)
    client.subscribe("t")
    assert client.publish("t", b"x" * size) == [f"PUBLISH t '{'x' * size}'"]


# ---------------------------------------------------------------- reserved flags

FLAGGED = {
    "PUBACK": (0x41, b"\0\1"),
    "PUBREC": (0x51, b"\0\1"),
    "PUBREL": (0x60, b"\0\1"),
    "PUBCOMP": (0x71, b"\0\1"),
    "PINGREQ": (0xC1, b""),
    "DISCONNECT": (0xE1, b""),
}
FLAGS: list[Row] = [
    row
    for name, (first, body) in FLAGGED.items()
    for row in rows(
        name,
        "2.1.3-1",
        "2.2.2-1 2.2.2-2",
        lambda _, first=first, body=body: packet(first, body),  # type: ignore[misc]
        *MALFORMED,
    )
]
FLAGS += [
    *rows("SUBSCRIBE", "2.1.3-1", "2.2.2-1 2.2.2-2", lambda w: w.subscribe(("t", 0), first_byte=0x80), *MALFORMED),
    *rows("UNSUBSCRIBE", "2.1.3-1", "2.2.2-1 2.2.2-2", lambda w: w.unsubscribe("t", first_byte=0xA3), *MALFORMED),
    *rows("AUTH", "2.1.3-1", "", lambda _: packet(0xF1, b"\x19"), *MALFORMED),
    *rows("packet type 0", "4.13.1-1", "4.8.0-1", lambda _: packet(0x00), *PROTOCOL_ERROR),
    *rows("packet type 15", "", "4.8.0-1", lambda _: packet(0xF0), *PROTOCOL_ERROR),
]


@pytest.mark.parametrize(("version", "sent", "received"), FLAGS)
def test_reserved_flags_must_have_the_values_of_the_table(
    gateway: Gateway, version: int, sent: bytes, received: list[str]
) -> None:
    assert gateway.client("c", version).request(sent) == received


# ---------------------------------------------------------------- packet identifiers

ZEROES: list[Row] = [
    *rows("SUBSCRIBE", "2.2.1-3", "2.3.1-1", lambda w: w.subscribe(("t", 0), id=0), *PROTOCOL_ERROR),
    *rows("UNSUBSCRIBE", "2.2.1-3", "2.3.1-1", lambda w: w.unsubscribe("t", id=0), *PROTOCOL_ERROR),
    *rows("PUBLISH of QoS 1", "2.2.1-3", "2.3.1-1", lambda w: w.publish("t", qos=1, id=0), *PROTOCOL_ERROR),
    *rows("PUBLISH of QoS 2", "2.2.1-3", "2.3.1-1", lambda w: w.publish("t", qos=2, id=0), *PROTOCOL_ERROR),
    *rows("PUBACK", "2.2.1-5", "2.3.1-6", lambda w: w.puback(0), *PROTOCOL_ERROR),
    *rows("PUBREC", "2.2.1-5", "2.3.1-6", lambda w: w.pubrec(0), *PROTOCOL_ERROR),
    *rows("PUBREL", "2.2.1-5", "2.3.1-6", lambda w: w.pubrel(0), *PROTOCOL_ERROR),
    *rows("PUBCOMP", "2.2.1-5", "", lambda w: w.pubcomp(0), *PROTOCOL_ERROR),
]


@pytest.mark.parametrize(("version", "sent", "received"), ZEROES)
def test_packet_identifier_0_ends_the_connection(
    gateway: Gateway, version: int, sent: bytes, received: list[str]
) -> None:
    assert gateway.client("c", version).request(sent) == received


@statements("2.2.1-2", "2.3.1-5")
def test_a_publish_of_qos_0_has_no_packet_identifier(gateway: Gateway, version: int) -> None:
    client = gateway.client("c", version)
    client.subscribe("t", 2)
    assert client.publish("t", b"\x00\x07hi") == ["PUBLISH t '\\x00\\x07hi'"]


@statements("2.2.1-4 4.3.2-1 4.3.3-1", "2.3.1-4")
def test_a_packet_identifier_in_use_is_not_assigned_again(version: int) -> None:
    gateway = Gateway(prefetch=65_535)
    reader, writer = gateway.client("r", version), gateway.client("w")
    reader.subscribe("t", 2)
    writer.publish("t", qos=1, id=1)
    assert reader.receive() == ["PUBLISH q1 #1 t 'hi'"]
    ids = [1]
    for _ in range(66):
        for _ in range(993):
            writer.machine.receive(writer.write.publish("t", b"", qos=1, id=9))
        given = [int(line.split()[2][1:]) for line in reader.receive()]
        reader.request(*(reader.write.puback(id) for id in given))
        ids += given
    assert ids == [1, *range(2, 65_536), *range(2, len(ids) - 65_533)]
    assert reader.puback(1) == []


@statements("2.2.1-5", "2.3.1-6")
def test_acknowledgements_have_the_packet_identifier_of_their_publish(gateway: Gateway, version: int) -> None:
    client = gateway.client("c", version)
    client.subscribe("t", 0)
    assert client.publish("t", qos=1, id=0xABCD) == ["PUBLISH t 'hi'", f"PUBACK #{0xABCD}"]
    assert client.publish("t", qos=2, id=0xFFFF) == ["PUBLISH t 'hi'", f"PUBREC #{0xFFFF}"]
    assert client.pubrel(0xFFFF) == [f"PUBCOMP #{0xFFFF}"]
    client.subscribe("t", 2)
    assert client.publish("t", qos=2, id=0x0100) == ["PUBLISH q2 #1 t 'hi'", "PUBREC #256"]
    assert client.pubrec(1) == ["PUBREL #1"]


@statements("2.2.1-6 3.8.4-2 3.10.4-5", "2.3.1-7 3.8.4-2 3.10.4-4")
def test_suback_and_unsuback_have_the_packet_identifier_of_their_request(gateway: Gateway, version: int) -> None:
    client = gateway.client("c", version)
    assert client.subscribe("t", id=0xFFFF) == ["SUBACK #65535 0"]
    assert client.unsubscribe("t", id=0x0102) == worded(version, "UNSUBACK #258 0" if version == 5 else "UNSUBACK #258")


# ---------------------------------------------------------------- properties


@statements("2.2.2-1")
def test_no_properties_are_encoded_as_length_0(gateway: Gateway, version: int) -> None:
    client = gateway.client("c", version)
    assert client.request(FIVE.subscribe(("t", 0))) == [
        "SUBACK #1 0"
    ]  # the frame reader has checked that the property length is 0
    assert client.request(FIVE.publish("t")) == ["PUBLISH t 'hi'"]
    assert client.request(packet(0x30, text("t"))) == list(MALFORMED)


PROPERTIES: list[Row] = [
    *rows("twice", "4.13.1-1", "", lambda w: w.publish("t", properties=message_expiry(1) * 2), *PROTOCOL_ERROR),
    *rows("twice, of a CONNECT's kind", "4.13.1-1", "",
          lambda w: w.disconnect(0, session_expiry(0) * 2), *PROTOCOL_ERROR),
    *rows("a user property twice", "4.13.1-1", "",
          lambda w: w.publish("t", properties=user_property("a", "b") * 2) + w.pingreq(), "PINGRESP"),
    *rows("unknown", "4.13.1-1", "", lambda w: w.publish("t", properties=b"\x7f\x00"), *MALFORMED),
    *rows("unknown, in two bytes", "4.13.1-1", "", lambda w: w.publish("t", properties=b"\x81\x01\x00"), *MALFORMED),
    *rows("of a will in PUBLISH", "4.13.1-1", "", lambda w: w.publish("t", properties=will_delay(1)), *MALFORMED),
    *rows("of a PUBLISH in SUBSCRIBE", "4.13.1-1", "",
          lambda w: w.subscribe(("t", 0), properties=topic_alias(1)), *MALFORMED),
    *rows("of an AUTH in UNSUBSCRIBE", "4.13.1-1", "",
          lambda w: w.unsubscribe("t", properties=authentication("x")), *MALFORMED),
    *rows("a reason string in SUBSCRIBE", "4.13.1-1", "",
          lambda w: w.subscribe(("t", 0), properties=reason_string("x")), *MALFORMED),
    *rows("cut short", "4.13.1-1", "", lambda w: packet(0x30, text("t") + b"\x03\x02\0\0"), *MALFORMED),
    *rows("beyond the packet", "4.13.1-1", "", lambda w: packet(0x30, text("t") + b"\x7fhi"), *MALFORMED),
    *rows("in an acknowledgement, beyond it", "4.13.1-1", "", lambda w: packet(0x40, b"\0\1\0\5"), *MALFORMED),
]  # fmt: skip


@pytest.mark.parametrize(("version", "sent", "received"), PROPERTIES)
def test_a_property_in_a_wrong_packet_or_repeated_ends_the_connection(
    gateway: Gateway, version: int, sent: bytes, received: list[str]
) -> None:
    assert gateway.client("c", version).request(sent) == received


# ---------------------------------------------------------------- errors

ERRORS: list[Row] = [
    *rows("a packet cut short", "4.13.1-1", "4.8.0-1", lambda _: packet(0x82, b"\0"), *MALFORMED),
    *rows("a string longer than its packet", "4.13.1-1", "4.8.0-1", lambda _: packet(0x30, b"\0\5t"), *MALFORMED),
    *rows("a wildcard in a topic", "4.13.1-1", "4.8.0-1", lambda w: w.publish("t/+"), *NOT_A_TOPIC),
    *rows("CONNACK from a client", "4.13.1-1", "4.8.0-1", lambda _: packet(0x20, b"\0\0"), *PROTOCOL_ERROR),
    *rows("SUBACK from a client", "4.13.1-1", "4.8.0-1", lambda _: packet(0x90, b"\0\1\0"), *PROTOCOL_ERROR),
    *rows("UNSUBACK from a client", "4.13.1-1", "4.8.0-1", lambda _: packet(0xB0, b"\0\1"), *PROTOCOL_ERROR),
    *rows("PINGRESP from a client", "4.13.1-1", "4.8.0-1", lambda _: packet(0xD0), *PROTOCOL_ERROR),
    *rows("PINGREQ with a body", "4.13.1-1", "4.8.0-1", lambda _: packet(0xC0, b"x"), *MALFORMED),
    *rows("later packets are ignored", "4.13.2-1", "4.8.0-1",
          lambda w: packet(0xD0) + w.pingreq() + w.subscribe(("t", 0)), *PROTOCOL_ERROR),
]  # fmt: skip


@pytest.mark.parametrize(("version", "sent", "received"), ERRORS)
def test_an_error_ends_the_connection_with_its_reason(
    gateway: Gateway, version: int, sent: bytes, received: list[str]
) -> None:
    assert gateway.client("c", version).request(sent) == received


@statements("4.13.1-1", "4.8.0-1")
def test_an_error_does_not_affect_other_clients(gateway: Gateway, version: int) -> None:
    other, client = gateway.client("other", version), gateway.client("c", version)
    other.subscribe("t")
    assert client.request(client.write.publish("t"), packet(0xD0))[-1] == CLOSED
    assert other.receive() == ["PUBLISH t 'hi'"]
    assert other.request(other.write.pingreq()) == ["PINGRESP"]


@statements("4.13.2-1", "4.8.0-2")
def test_a_temporary_error_ends_the_connection_too(version: int) -> None:
    """The exchange of MQTT messages is deleted, and may be declared again later."""
    gateway = Gateway(exchange="topics")
    gateway.vhost.declare_exchange("topics", "topic")
    client = gateway.client("c", version)
    gateway.vhost.delete_exchange("topics")
    assert client.publish("t", qos=1, id=1) == worded(version, "DISCONNECT IMPLEMENTATION_SPECIFIC_ERROR", CLOSED)
