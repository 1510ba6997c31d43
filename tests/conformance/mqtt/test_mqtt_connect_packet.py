"""CONNECT: its position, its fields, client identifiers and logins (3.1)."""

import pytest

from tests.conformance.mqtt.tables import CLOSED, PROTOCOL_ERROR, Row, rows, statements, worded
from tests.protocols.mqtt.dialogue import Gateway
from tests.protocols.mqtt.packets import (
    Will,
    authentication,
    packet,
    receive_maximum,
    session_expiry,
    text,
    topic_alias,
    user_property,
)

MALFORMED = ("CONNACK MALFORMED_PACKET", CLOSED)
IN = "CONNACK"


def answer_to(gateway: Gateway, version: int, sent: bytes) -> list[str]:
    """Return the answer to a new client, with a successful CONNACK shown without its properties."""
    return [line.split(" MAXIMUM_PACKET_SIZE")[0] for line in gateway.new_client(version).request(sent)]


FIRST: list[Row] = [
    *rows("PUBLISH", "3.1.0-1", "3.1.0-1", lambda w: w.publish("t"), CLOSED),
    *rows("SUBSCRIBE", "3.1.0-1", "3.1.0-1", lambda w: w.subscribe(("t", 0)), CLOSED),
    *rows("PINGREQ", "3.1.0-1", "3.1.0-1", lambda w: w.pingreq(), CLOSED),
    *rows("DISCONNECT", "3.1.0-1", "3.1.0-1", lambda w: w.disconnect(), CLOSED),
    *rows("AUTH", "3.1.0-1", "", lambda w: w.auth(0x19, authentication("x")), CLOSED),
    *rows("something else", "3.1.0-1", "3.1.0-1", lambda _: b"GET / HTTP/1.1\r\nUser-Agent: " + b"x" * 99, CLOSED),
]


@pytest.mark.parametrize(("version", "sent", "received"), FIRST)
def test_the_first_packet_must_be_connect(gateway: Gateway, version: int, sent: bytes, received: list[str]) -> None:
    assert gateway.new_client(version).request(sent) == received


@statements("3.1.0-2", "3.1.0-2")
def test_a_second_connect_ends_the_connection(gateway: Gateway, version: int) -> None:
    client = gateway.client("c", version)
    assert client.request(client.write.connect("c")) == worded(version, *PROTOCOL_ERROR)


# ---------------------------------------------------------------- name, level and flags

VERSIONS: list[Row] = [
    *rows("a wrong name", "3.1.2-1", "", lambda w: w.connect(name="MQTX"),
          "CONNACK UNSUPPORTED_PROTOCOL_VERSION", CLOSED),
    *rows("a name in lower case", "3.1.2-1", "", lambda w: w.connect(name="mqtt"),
          "CONNACK UNSUPPORTED_PROTOCOL_VERSION", CLOSED),
    *rows("a wrong name", "", "3.1.2-1", lambda w: w.connect(name="MQTX"), "CONNACK 1", CLOSED),
    *rows("the name of 3.1", "", "3.1.2-1", lambda w: w.connect(name="MQIsdp"), "CONNACK 1", CLOSED),
    *rows("a name that is not UTF-8", "3.1.2-1", "3.1.2-1", lambda w: w.connect(name=b"\xff"), CLOSED),
    *rows("a later level", "3.1.2-2", "", lambda w: w.connect(level=6),
          "CONNACK UNSUPPORTED_PROTOCOL_VERSION", CLOSED),
    *rows("an earlier level", "", "3.1.2-2", lambda w: w.connect(level=2), "CONNACK 1", CLOSED),
    *rows("level 0", "", "3.1.2-2", lambda w: w.connect(level=0), "CONNACK 1", CLOSED),
    *rows("the level of 3.1 with the name of 3.1.1", "", "3.1.2-2", lambda w: w.connect(level=3), "CONNACK 1", CLOSED),
    *rows("as a bridge marks it", "", "3.1.2-2", lambda w: w.connect(level=0x84), "CONNACK 1", CLOSED),
]  # fmt: skip


@pytest.mark.parametrize(("version", "sent", "received"), VERSIONS)
def test_an_unsupported_protocol_version_is_refused(
    gateway: Gateway, version: int, sent: bytes, received: list[str]
) -> None:
    assert answer_to(gateway, version, sent) == received


WILL_FIELDS = {5: b"\0" + text("w") + text("gone"), 4: text("w") + text("gone")}

FLAGS: list[Row] = [
    *rows("reserved flag", "3.1.2-3 3.1.4-1", "3.1.2-3 3.1.4-1", lambda w: w.connect(flags=0x01), *MALFORMED),
    *rows("flags of the fixed header", "3.1.4-1", "3.1.4-1", lambda w: b"\x11" + w.connect()[1:], *MALFORMED),
    *rows("QoS 1 of no will", "3.1.2-11", "3.1.2-11 3.1.2-13", lambda w: w.connect(flags=0x08), *MALFORMED),
    *rows("QoS 2 of no will", "3.1.2-11", "3.1.2-11 3.1.2-13", lambda w: w.connect(flags=0x10), *MALFORMED),
    *rows("Retain without a will", "3.1.2-13", "3.1.2-11 3.1.2-15", lambda w: w.connect(flags=0x20), *MALFORMED),
    *rows("will of QoS 0", "3.1.2-12", "3.1.2-14", lambda w: w.connect(will=Will("w", qos=0)), IN),
    *rows("will of QoS 1", "3.1.2-12", "3.1.2-14", lambda w: w.connect(will=Will("w", qos=1)), IN),
    *rows("will of QoS 2", "3.1.2-12", "3.1.2-14", lambda w: w.connect(will=Will("w", qos=2)), IN),
    *rows("will of QoS 3", "3.1.2-12", "3.1.2-14",
          lambda w: w.connect_of(0x1E, text("c") + WILL_FIELDS[w.version]), *MALFORMED),
    *rows("will without its fields", "3.1.2-9", "3.1.2-9", lambda w: w.connect_of(0x06, text("c")), *MALFORMED),
    *rows("will without a message", "3.1.2-9", "3.1.2-9",
          lambda w: w.connect_of(0x06, text("c") + w.block(b"") + text("w")), *MALFORMED),
    *rows("will fields without the will flag", "3.1.2-11", "3.1.2-11",
          lambda w: w.connect_of(0x02, text("c") + WILL_FIELDS[w.version]), *MALFORMED),
    *rows("a user name not announced", "3.1.2-16", "3.1.2-18",
          lambda w: w.connect_of(0x02, text("c") + text("guest")), *MALFORMED),
    *rows("a user name announced and missing", "3.1.2-17", "3.1.2-19",
          lambda w: w.connect_of(0x82, text("c")), *MALFORMED),
    *rows("a password not announced", "3.1.2-18", "3.1.2-20",
          lambda w: w.connect_of(0x82, text("c") + text("guest") + text("guest")), *MALFORMED),
    *rows("a password announced and missing", "3.1.2-19", "3.1.2-21",
          lambda w: w.connect_of(0xC2, text("c") + text("guest")), *MALFORMED),
    *rows("both", "3.1.2-17 3.1.2-19", "3.1.2-19 3.1.2-21",
          lambda w: w.connect(username="guest", password=b"guest"), IN),
    *rows("a password without a user name", "", "3.1.2-22",
          lambda w: w.connect_of(0x42, text("c") + text("guest")), *MALFORMED),
    *rows("all fields in their order", "3.1.3-1", "3.1.3-1",
          lambda w: w.connect("c", will=Will("w"), username="guest", password=b"guest"), IN),
    *rows("the user name before the will", "3.1.3-1", "",
          lambda w: w.connect_of(0xC6, text("c") + text("guest") * 2 + WILL_FIELDS[5]), *MALFORMED),
    *rows("the user name before the will", "", "3.1.3-1",
          lambda w: w.connect_of(0xC6, text("c") + text("guest") * 2 + WILL_FIELDS[4]), "CONNACK 4", CLOSED),
    *rows("no client identifier", "3.1.3-3", "3.1.3-3", lambda w: w.connect_of(0x02, b""), *MALFORMED),
    *rows("a client identifier cut short", "3.1.3-3", "3.1.3-3", lambda w: w.connect_of(0x02, b"\0\3ab"), *MALFORMED),
    *rows("a client identifier that is not UTF-8", "3.1.3-4", "3.1.3-4", lambda w: w.connect(b"\xff"), *MALFORMED),
    *rows("a client identifier with U+0000", "3.1.3-4", "3.1.3-4", lambda w: w.connect("a\0b"), *MALFORMED),
    *rows("a will topic that is not UTF-8", "3.1.3-11", "3.1.3-10",
          lambda w: w.connect(will=Will(b"\xff")), *MALFORMED),
    *rows("a will topic with a wildcard", "3.1.4-1", "3.1.4-1",
          lambda w: w.connect(will=Will("w/#")), "CONNACK TOPIC_NAME_INVALID", CLOSED),
    *rows("a user name that is not UTF-8", "3.1.3-12", "3.1.3-11",
          lambda w: w.connect(username=b"\xff", password=b""), *MALFORMED),
    *rows("more than fits", "3.1.4-1", "3.1.4-1", lambda w: w.connect_of(0x02, text("c") + b"x"), *MALFORMED),
    *rows("nothing but a name", "3.1.4-1", "3.1.4-1", lambda w: packet(0x10, text("MQTT")), CLOSED),
    *rows("nothing at all", "3.1.4-1", "3.1.4-1", lambda w: packet(0x10), CLOSED),
]  # fmt: skip


@pytest.mark.parametrize(("version", "sent", "received"), FLAGS)
def test_a_connect_must_have_the_fields_of_its_flags(
    gateway: Gateway, version: int, sent: bytes, received: list[str]
) -> None:
    assert answer_to(gateway, version, sent) == received


PROPERTIES: list[Row] = [
    *rows("session expiry twice", "3.1.4-1", "", lambda w: w.connect(properties=session_expiry(1) * 2),
          "CONNACK PROTOCOL_ERROR", CLOSED),
    *rows("Receive Maximum 0", "3.1.4-1", "", lambda w: w.connect(properties=receive_maximum(0)),
          "CONNACK PROTOCOL_ERROR", CLOSED),
    *rows("a Maximum Packet Size of 0", "3.1.4-1", "", lambda w: w.connect(properties=b"\x27\0\0\0\0"),
          "CONNACK PROTOCOL_ERROR", CLOSED),
    *rows("Request Problem Information 2", "3.1.4-1", "", lambda w: w.connect(properties=b"\x17\x02"),
          "CONNACK PROTOCOL_ERROR", CLOSED),
    *rows("Request Response Information 2", "3.1.4-1", "", lambda w: w.connect(properties=b"\x19\x02"),
          "CONNACK PROTOCOL_ERROR", CLOSED),
    *rows("a topic alias", "3.1.4-1", "", lambda w: w.connect(properties=topic_alias(1)), *MALFORMED),
    *rows("authentication data alone", "3.1.4-1", "", lambda w: w.connect(properties=b"\x16" + text(b"x")),
          "CONNACK PROTOCOL_ERROR", CLOSED),
    *rows("user properties", "3.1.4-1", "", lambda w: w.connect(properties=user_property("a", "b") * 2), IN),
    *rows("a text will that is not UTF-8", "3.1.4-1", "",
          lambda w: w.connect(will=Will("w", b"\xff", properties=b"\x01\x01")),
          "CONNACK PAYLOAD_FORMAT_INVALID", CLOSED),
    *rows("a response topic with a wildcard", "3.1.4-1", "",
          lambda w: w.connect(will=Will("w", properties=b"\x08" + text("a/+"))), "CONNACK TOPIC_NAME_INVALID", CLOSED),
    *rows("a topic alias of a will", "3.1.4-1", "", lambda w: w.connect(will=Will("w", properties=topic_alias(1))),
          *MALFORMED),
]  # fmt: skip


@pytest.mark.parametrize(("version", "sent", "received"), PROPERTIES)
def test_the_properties_of_a_connect(gateway: Gateway, version: int, sent: bytes, received: list[str]) -> None:
    assert answer_to(gateway, version, sent) == received


# ---------------------------------------------------------------- client identifiers

IDENTIFIERS: list[Row] = [
    *rows("one character", "3.1.3-5", "3.1.3-5", lambda w: w.connect("0"), IN),
    *rows("23 characters", "3.1.3-5", "3.1.3-5", lambda w: w.connect("0123456789abcdefghijklm"), IN),
    *rows("the rest of the alphabet", "3.1.3-5", "3.1.3-5", lambda w: w.connect("nopqrstuvwxyzABCDEFGHI"), IN),
    *rows("the last part of the alphabet", "3.1.3-5", "3.1.3-5", lambda w: w.connect("JKLMNOPQRSTUVWXYZ"), IN),
    *rows("more than required", "3.1.3-5", "3.1.3-5", lambda w: w.connect("a/b .#é" * 20), IN),
    *rows("longer than is accepted", "3.1.3-8", "", lambda w: w.connect("c" * 201),
          "CONNACK CLIENT_IDENTIFIER_NOT_VALID", CLOSED),
    *rows("longer than is accepted", "", "3.1.3-9", lambda w: w.connect("c" * 201), "CONNACK 2", CLOSED),
    *rows("none, for a persistent session", "", "3.1.3-8", lambda w: w.connect("", is_clean=False),
          "CONNACK 2", CLOSED),
]  # fmt: skip


@pytest.mark.parametrize(("version", "sent", "received"), IDENTIFIERS)
def test_client_identifiers_that_are_accepted_and_refused(
    gateway: Gateway, version: int, sent: bytes, received: list[str]
) -> None:
    assert answer_to(gateway, version, sent) == received


@statements("3.1.3-6 3.1.3-7 3.2.2-16", "3.1.3-6")
def test_a_client_without_an_identifier_gets_a_unique_one(gateway: Gateway, version: int) -> None:
    one, other = gateway.client("", version), gateway.client("", version)
    clients = [session.client_id for session in gateway.vhost.sessions]
    assert clients == ["auto-token-1", "auto-token-2"]
    if version == 5:
        assert str(one.welcome).endswith(" ASSIGNED_CLIENT_IDENTIFIER='auto-token-1'")
        assert str(other.welcome).endswith(" ASSIGNED_CLIENT_IDENTIFIER='auto-token-2'")
    assert one.receive() == []  # neither takes the other's session over


@statements("3.1.3-7 3.2.2-16")
def test_an_assigned_identifier_can_be_used_to_reconnect(gateway: Gateway, version: int) -> None:
    client = gateway.client("", version, is_clean=False, expiry=100)
    client.subscribe("t", 1)
    client.lose()
    assert gateway.client("auto-token-1", version, is_clean=False).welcome.line == "CONNACK present"


# ---------------------------------------------------------------- logins


@statements("3.1.4-2")
def test_a_failed_login_is_refused(gateway: Gateway, version: int) -> None:
    client = gateway.new_client(version)
    refusal = ["CONNACK BAD_USER_NAME_OR_PASSWORD", CLOSED]
    assert client.request(client.write.connect("c", username="guest", password=b"wrong")) == refusal


@statements("", "3.2.2-4 3.2.2-5")
def test_a_failed_login_is_refused_with_a_return_code(gateway: Gateway, version: int) -> None:
    gateway.client("c", version, is_clean=False)
    client = gateway.new_client(version)
    sent = client.write.connect("c", is_clean=False, username="guest", password=b"wrong")
    assert client.request(sent) == ["CONNACK 4", CLOSED]


@statements("3.1.4-6", "3.1.4-5")
def test_packets_after_a_refused_connect_are_ignored(gateway: Gateway, version: int) -> None:
    reader, client = gateway.client("r"), gateway.new_client(version)
    reader.subscribe("t")
    refused = client.write.connect("c", username="guest", password=b"wrong")
    received = client.request(refused, client.write.publish("t"), client.write.pingreq())
    assert received == ["CONNACK BAD_USER_NAME_OR_PASSWORD" if version == 5 else "CONNACK 4", CLOSED]
    assert reader.receive() == []


@statements("3.1.4-5 3.2.0-1", "3.1.4-4 3.2.0-1")
def test_packets_after_an_accepted_connect_are_answered_after_the_connack(gateway: Gateway, version: int) -> None:
    client = gateway.new_client(version)
    received = client.request(client.write.connect("c"), client.write.subscribe(("t", 0)), client.write.publish("t"))
    assert [line.split()[0] for line in received] == ["CONNACK", "SUBACK", "PUBLISH"]


@statements("3.2.0-1", "3.2.0-1")
def test_the_connack_precedes_queued_messages(gateway: Gateway, version: int) -> None:
    client = gateway.client("c", version, is_clean=False, expiry=100)
    client.subscribe("t", 1)
    client.lose()
    gateway.client("w").publish("t", qos=1, id=1)
    back = gateway.new_client(version)
    assert back.connect("c", is_clean=False) == ["CONNACK present", "PUBLISH q1 #1 t 'hi'"]


@statements("3.2.0-2")
def test_a_connection_gets_one_connack(gateway: Gateway, version: int) -> None:
    client = gateway.client("c", version)
    assert client.request(client.write.connect("c")) == list(PROTOCOL_ERROR)


@statements("3.1.4-3 3.1.3-2 3.14.2-1", "3.1.4-2 3.1.3-2")
def test_a_connect_with_a_used_client_identifier_takes_the_session_over(gateway: Gateway, version: int) -> None:
    first = gateway.client("c", version)
    second = gateway.client("c", version)
    assert first.receive() == worded(version, "DISCONNECT SESSION_TAKEN_OVER", CLOSED)
    assert second.request(second.write.pingreq()) == ["PINGRESP"]


@statements("3.1.4-3", "3.1.4-2")
def test_a_taken_over_session_keeps_its_messages(gateway: Gateway, version: int) -> None:
    first = gateway.client("c", version, is_clean=False, expiry=100)
    first.subscribe("t", 1)
    gateway.client("w").publish("t", qos=1, id=1)
    assert first.receive() == ["PUBLISH q1 #1 t 'hi'"]
    second = gateway.new_client(version)
    assert second.connect("c", is_clean=False, expiry=100) == ["CONNACK present", "PUBLISH q1 #1 dup t 'hi'"]
