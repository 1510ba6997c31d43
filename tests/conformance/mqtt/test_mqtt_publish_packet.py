"""PUBLISH in both directions: flags, topics, properties, and matching subscriptions (3.3)."""

import pytest

from tests.conformance.mqtt.tables import CLOSED, MALFORMED, NOT_A_TOPIC, PROTOCOL_ERROR, Row, rows, statements, worded
from tests.protocols.mqtt.dialogue import Gateway
from tests.protocols.mqtt.packets import (
    FIVE,
    content_type,
    correlation_data,
    message_expiry,
    options,
    packet,
    payload_format,
    response_topic,
    subscription_identifier,
    text,
    topic_alias,
    topic_alias_maximum,
    user_property,
)

WRONG: list[Row] = [
    *rows("DUP with QoS 0", "3.3.1-2 4.3.1-1", "3.3.1-2", lambda w: w.publish("t", dup=True), *MALFORMED),
    *rows("QoS 3", "3.3.1-4", "3.3.1-4", lambda w: w.publish("t", qos=3, id=1), *MALFORMED),
    *rows("QoS 3 with DUP", "3.3.1-4", "3.3.1-4", lambda w: w.publish("t", qos=3, id=1, dup=True), *MALFORMED),
    *rows("no topic", "3.3.2-1", "3.3.2-1", lambda _: packet(0x30), *MALFORMED),
    *rows("a topic cut short", "3.3.2-1", "3.3.2-1", lambda _: packet(0x30, b"\0\5top"), *MALFORMED),
    *rows("a topic that is not UTF-8", "3.3.2-1", "3.3.2-1", lambda w: w.publish(b"\xff"), *MALFORMED),
    *rows("no packet identifier", "3.3.2-1", "3.3.2-1", lambda _: packet(0x32, text("t")), *MALFORMED),
    *rows("a topic with +", "3.3.2-2 4.7.0-1", "3.3.2-2 4.7.1-1", lambda w: w.publish("a/+"), *NOT_A_TOPIC),
    *rows("a topic with #", "3.3.2-2 4.7.0-1", "3.3.2-2 4.7.1-1", lambda w: w.publish("#"), *NOT_A_TOPIC),
    *rows("a topic with + in a level", "3.3.2-2 4.7.0-1", "3.3.2-2 4.7.1-1", lambda w: w.publish("a+b"), *NOT_A_TOPIC),
    *rows("a topic with # and QoS 2", "3.3.2-2", "3.3.2-2", lambda w: w.publish("a#", qos=2, id=1), *NOT_A_TOPIC),
    *rows("neither topic nor alias", "3.3.2-1 4.7.3-1", "4.7.3-1", lambda w: w.publish(""), *PROTOCOL_ERROR),
    *rows("a topic alias of 0", "3.3.2-8", "", lambda w: w.publish("t", properties=topic_alias(0)),
          "DISCONNECT TOPIC_ALIAS_INVALID", CLOSED),
    *rows("an alias without a topic", "3.3.2-12", "", lambda w: w.publish("", properties=topic_alias(1)),
          *PROTOCOL_ERROR),
    *rows("a topic alias twice", "4.13.1-1", "", lambda w: w.publish("t", properties=topic_alias(1) * 2),
          *PROTOCOL_ERROR),
    *rows("a payload format of 2", "3.3.2-4", "", lambda w: w.publish("t", properties=payload_format(2)),
          *PROTOCOL_ERROR),
    *rows("text that is not UTF-8", "3.3.2-4", "", lambda w: w.publish("t", b"\xff", properties=payload_format(1)),
          "DISCONNECT PAYLOAD_FORMAT_INVALID", CLOSED),
    *rows("a response topic that is not UTF-8", "3.3.2-13", "",
          lambda w: w.publish("t", properties=response_topic(b"\xff")), *MALFORMED),
    *rows("a response topic with +", "3.3.2-14", "",
          lambda w: w.publish("t", properties=response_topic("a/+")), *NOT_A_TOPIC),
    *rows("a response topic with #", "3.3.2-14", "",
          lambda w: w.publish("t", properties=response_topic("#")), *NOT_A_TOPIC),
    *rows("a content type that is not UTF-8", "3.3.2-19", "",
          lambda w: w.publish("t", properties=content_type(b"\xff")), *MALFORMED),
    *rows("a subscription identifier", "3.3.4-6", "",
          lambda w: w.publish("t", properties=subscription_identifier(1)), *PROTOCOL_ERROR),
]  # fmt: skip


@pytest.mark.parametrize(("version", "sent", "received"), WRONG)
def test_an_invalid_publish_ends_the_connection(
    gateway: Gateway, version: int, sent: bytes, received: list[str]
) -> None:
    assert gateway.client("c", version).request(sent) == received


ANSWERED: list[Row] = [
    *rows("QoS 0", "3.3.4-1", "3.3.4-1", lambda w: w.publish("t") + w.pingreq(), "PINGRESP"),
    *rows("QoS 1", "3.3.4-1 3.4.2-1", "3.3.4-1", lambda w: w.publish("t", qos=1, id=1), "PUBACK #1"),
    *rows("QoS 2", "3.3.4-1 3.5.2-1", "3.3.4-1", lambda w: w.publish("t", qos=2, id=1), "PUBREC #1"),
    *rows("QoS 1 without a subscriber", "3.4.2-1", "3.3.4-1", lambda w: w.publish("unrouted", qos=1, id=1),
          "PUBACK #1 NO_MATCHING_SUBSCRIBERS"),
    *rows("QoS 2 without a subscriber", "3.5.2-1", "3.3.4-1", lambda w: w.publish("unrouted", qos=2, id=1),
          "PUBREC #1 NO_MATCHING_SUBSCRIBERS"),
    *rows("QoS 1, a text payload that is not UTF-8", "3.4.2-1", "",
          lambda w: w.publish("t", b"\xff", qos=1, id=1, properties=payload_format(1)),
          "PUBACK #1 PAYLOAD_FORMAT_INVALID"),
    *rows("QoS 2, a text payload that is not UTF-8", "3.5.2-1", "",
          lambda w: w.publish("t", b"\xff", qos=2, id=1, properties=payload_format(1)),
          "PUBREC #1 PAYLOAD_FORMAT_INVALID"),
]  # fmt: skip


@pytest.mark.parametrize(("version", "sent", "received"), ANSWERED)
def test_a_publish_is_acknowledged_according_to_its_qos(
    gateway: Gateway, version: int, sent: bytes, received: list[str]
) -> None:
    gateway.client("reader").subscribe("t")
    assert gateway.client("c", version).request(sent) == received


@statements("3.3.1-3 4.3.2-2 4.3.3-2", "3.3.1-3 4.3.2-1")
@pytest.mark.parametrize("qos", [1, 2])
def test_dup_of_a_publish_is_not_forwarded(gateway: Gateway, version: int, qos: int) -> None:
    reader = gateway.client("r", version)
    reader.subscribe("t", 2)
    gateway.client("w").publish("t", qos=qos, id=1, dup=True)
    assert reader.receive() == [f"PUBLISH q{qos} #1 t 'hi'"]


@statements("4.3.1-1", "4.3.1-1")
def test_a_qos_0_delivery_has_no_dup_and_is_sent_once(gateway: Gateway, version: int) -> None:
    reader = gateway.client("r", version, is_clean=False, expiry=100)
    reader.subscribe("t", 0)
    gateway.client("w").publish("t", qos=1, id=1, dup=True)
    assert reader.receive() == ["PUBLISH t 'hi'"]
    reader.lose()
    assert gateway.client("r", version, is_clean=False).backlog == []


@statements("3.3.2-3", "3.3.2-3")
def test_a_delivery_has_the_topic_of_its_publish(gateway: Gateway, version: int) -> None:
    reader, writer = gateway.client("r", version), gateway.client("w", version)
    reader.subscribe("#")
    topics = ["a", "/", "//", "a/", "/a", "a//b", "a.b", "a/b.c", "*", "a*/b", "%", "%2E", "a%2Fb", " ", "é/ü", "$a/"]
    for topic in topics:
        writer.publish(topic)
    assert reader.receive() == [f"PUBLISH {topic} 'hi'" for topic in topics if not topic.startswith("$")]


@statements("", "3.3.5-2")
@pytest.mark.parametrize(("ends", "received"), [(True, [CLOSED]), (False, ["PUBACK #1"])])
def test_a_publish_without_permission_ends_the_connection_or_is_acknowledged(
    version: int, ends: bool, received: list[str]
) -> None:
    gateway = Gateway(disconnect_on_unauthorized=ends)
    gateway.add_user("mute", "mute", may=(".*", "^mqtt-subscription", ".*"))
    reader = gateway.client("r")
    reader.subscribe("t")
    client = gateway.client("c", version, username="mute", password=b"mute")
    assert client.publish("t", qos=1, id=1) == received
    assert reader.receive() == []


@statements("3.4.2-1 3.5.2-1")
def test_a_publish_without_permission_is_refused_with_its_reason(version: int) -> None:
    gateway = Gateway(disconnect_on_unauthorized=False)
    gateway.add_user("mute", "mute", may=(".*", "^mqtt-subscription", ".*"))
    client = gateway.client("c", username="mute", password=b"mute")
    assert client.publish("t", qos=1, id=1) == ["PUBACK #1 NOT_AUTHORIZED"]
    assert client.publish("t", qos=2, id=2) == ["PUBREC #2 NOT_AUTHORIZED"]
    assert client.publish("t") == []


# ---------------------------------------------------------------- forwarded properties

CARRIED = [
    ("3.3.2-4", payload_format(1), "PAYLOAD_FORMAT_INDICATOR=1"),
    ("3.3.2-4", payload_format(0), "PAYLOAD_FORMAT_INDICATOR=0"),
    ("3.3.2-15", response_topic("answers/é/1"), "RESPONSE_TOPIC='answers/é/1'"),
    ("3.3.2-16", correlation_data(b"\x00\xff"), "CORRELATION_DATA='\\x00\\xff'"),
    ("3.3.2-16", correlation_data(b""), "CORRELATION_DATA=''"),
    ("3.3.2-20", content_type("text/plain; é"), "CONTENT_TYPE='text/plain; é'"),
    ("3.3.2-20", content_type(""), "CONTENT_TYPE=''"),
    ("3.3.2-17", user_property("", "") + user_property("é", "\ufeff"),
     "USER_PROPERTY=('', '') USER_PROPERTY=('é', '\\ufeff')"),
    ("3.3.2-17 3.3.2-18", user_property("b", "1") + user_property("a", "2") + user_property("b", "1"),
     "USER_PROPERTY=('b', '1') USER_PROPERTY=('a', '2') USER_PROPERTY=('b', '1')"),
]  # fmt: skip
PROPERTIES: list[Row] = [
    row
    for ids, given, expected in CARRIED
    for row in rows(
        expected,
        ids,
        "",
        lambda w, given=given: w.publish("t", b"text", qos=1, id=1, properties=given),  # type: ignore[misc]
        expected,
    )
]


@pytest.mark.parametrize(("version", "sent", "received"), PROPERTIES)
def test_a_property_of_a_message_is_forwarded_unchanged(
    gateway: Gateway, version: int, sent: bytes, received: list[str]
) -> None:
    readers = [gateway.client(f"r{qos}") for qos in range(2)]
    for qos, reader in enumerate(readers):
        reader.subscribe("t", qos)
    away = gateway.client("away", is_clean=False, expiry=100)
    away.subscribe("t", 1)
    away.lose()
    gateway.client("w").request(sent)
    assert readers[0].receive() == [f"PUBLISH t 'text' {received[0]}"]
    assert readers[1].receive() == [f"PUBLISH q1 #1 t 'text' {received[0]}"]
    assert gateway.client("away", is_clean=False).backlog == [f"PUBLISH q1 #1 t 'text' {received[0]}"]


@statements("3.3.2-17", "3.3.2-3")
def test_a_client_of_3_1_1_gets_no_properties(gateway: Gateway, version: int) -> None:
    reader = gateway.client("r", 4)
    reader.subscribe("t")
    gateway.client("w").publish("t", properties=user_property("a", "b"))
    assert reader.receive() == ["PUBLISH t 'hi'"]


# ---------------------------------------------------------------- expiry


@statements("3.3.2-6")
@pytest.mark.parametrize("waited_s", [0, 1, 59])
def test_a_delivery_has_the_remaining_expiry_interval(gateway: Gateway, version: int, waited_s: int) -> None:
    reader = gateway.client("r", is_clean=False, expiry=1000)
    reader.subscribe("t", 1)
    reader.lose()
    gateway.client("w").publish("t", qos=1, id=1, properties=message_expiry(60))
    gateway.advance(waited_s)
    left = f"PUBLISH q1 #1 t 'hi' MESSAGE_EXPIRY_INTERVAL={60 - waited_s}"
    assert gateway.client("r", is_clean=False).backlog == [left]


@statements("3.3.2-5")
@pytest.mark.parametrize("qos", [1, 2])
def test_an_expired_message_is_not_delivered(gateway: Gateway, version: int, qos: int) -> None:
    reader = gateway.client("r", is_clean=False, expiry=1000)
    reader.subscribe("t", 2)
    reader.lose()
    writer = gateway.client("w")
    writer.publish("t", b"short", qos=qos, id=1, properties=message_expiry(5))
    writer.publish("t", b"long", qos=qos, id=2, properties=message_expiry(50))
    writer.publish("t", b"ever", qos=qos, id=3)
    gateway.advance(6)
    assert gateway.client("r", is_clean=False).backlog == [
        f"PUBLISH q{qos} #1 t 'long' MESSAGE_EXPIRY_INTERVAL=44",
        f"PUBLISH q{qos} #2 t 'ever'",
    ]


@statements("3.3.2-5 3.3.2-6")
def test_a_retained_message_expires(gateway: Gateway, version: int) -> None:
    gateway.client("w").publish("t", retain=True, properties=message_expiry(10))
    gateway.advance(4)
    reader = gateway.client("r")
    assert reader.subscribe("t") == ["SUBACK #1 0", "PUBLISH retain t 'hi' MESSAGE_EXPIRY_INTERVAL=6"]
    gateway.advance(7)
    assert reader.subscribe("t") == ["SUBACK #1 0"]


# ---------------------------------------------------------------- aliases


@statements("3.3.2-12")
def test_an_alias_replaces_its_topic(gateway: Gateway, version: int) -> None:
    reader, writer = gateway.client("r"), gateway.client("w")
    reader.subscribe("#")
    for alias in range(1, 17):
        writer.publish(f"t/{alias}", properties=topic_alias(alias))
    for alias in range(1, 17):
        writer.publish("", properties=topic_alias(alias), qos=alias % 3, id=alias)
    topics = [f"PUBLISH t/{alias} 'hi'" for alias in range(1, 17)]
    assert reader.receive() == topics * 2


@statements("3.3.2-12")
def test_an_alias_may_get_a_new_topic(gateway: Gateway, version: int) -> None:
    reader, writer = gateway.client("r"), gateway.client("w")
    reader.subscribe("#")
    for topic in ("a", "", "b", "", "a"):
        writer.publish(topic, properties=topic_alias(1))
    assert [line.split()[1] for line in reader.receive()] == ["a", "a", "b", "b", "a"]


@statements("3.3.2-7")
def test_an_alias_of_the_client_ends_with_its_connection(gateway: Gateway, version: int) -> None:
    writer = gateway.client("w", is_clean=False, expiry=100)
    writer.publish("t", properties=topic_alias(1))
    writer.lose()
    writer = gateway.client("w", is_clean=False, expiry=100)
    assert writer.publish("", properties=topic_alias(1)) == list(PROTOCOL_ERROR)


@statements("3.3.2-7")
def test_an_alias_of_the_server_ends_with_its_connection(gateway: Gateway, version: int) -> None:
    aliases = topic_alias_maximum(5)
    reader = gateway.client("r", is_clean=False, expiry=100, properties=aliases)
    reader.subscribe("t", 1)
    gateway.client("w").publish("t", qos=1, id=1)
    assert reader.receive() == ["PUBLISH q1 #1 t 'hi' TOPIC_ALIAS=1"]
    reader.lose()
    back = gateway.client("r", is_clean=False, properties=aliases)
    assert back.backlog == ["PUBLISH q1 #1 dup t 'hi' TOPIC_ALIAS=1"]


@statements("3.3.2-7")
def test_an_alias_in_a_message_that_was_too_large_is_announced_again(gateway: Gateway, version: int) -> None:
    properties = topic_alias_maximum(5) + b"\x27\0\0\0\x1e"
    reader = gateway.client("r", properties=properties)
    reader.subscribe("t")
    writer = gateway.client("w")
    writer.publish("t", b"x" * 100)
    writer.publish("t", b"small")
    assert reader.receive() == ["PUBLISH t 'small' TOPIC_ALIAS=1"]


# ---------------------------------------------------------------- overlapping subscriptions


@statements("3.3.4-2", "3.3.5-1")
@pytest.mark.parametrize("granted", [(0, 1), (1, 0), (0, 2), (2, 1), (1, 2), (0, 0)])
def test_overlapping_subscriptions_deliver_once_with_the_highest_qos(
    gateway: Gateway, version: int, granted: tuple[int, int]
) -> None:
    reader = gateway.client("r", version)
    for filter, qos in zip(["a/+", "a/b"], granted, strict=True):
        reader.subscribe(filter, qos)
    gateway.client("w").publish("a/b", qos=2, id=1)
    best = max(granted)
    assert reader.receive() == [f"PUBLISH q{best} #1 a/b 'hi'" if best else "PUBLISH a/b 'hi'"]


@statements("3.3.4-3 3.3.4-4")
@pytest.mark.parametrize("qos", [0, 1])
def test_a_delivery_has_the_identifiers_of_all_matching_subscriptions(gateway: Gateway, version: int, qos: int) -> None:
    reader = gateway.client("r")
    for filter, number in (("a/+", 1), ("a/b", 200_000), ("#", 268_435_455), ("x", 7)):
        reader.subscribe(filter, qos, properties=subscription_identifier(number))
    reader.subscribe("+/b", qos)
    writer = gateway.client("w")
    writer.machine.receive(FIVE.publish("a/b", qos=1, id=1))
    writer.machine.receive(FIVE.publish("x", qos=1, id=2))
    writer.receive()
    first, second = reader.receive_frames()
    identifiers = [sorted(value for key, value in received.properties) for received in (first, second)]
    assert identifiers == [[1, 200_000, 268_435_455], [7, 268_435_455]]


@statements("3.3.4-3")
def test_a_subscription_that_replaces_another_has_its_own_identifier(gateway: Gateway, version: int) -> None:
    reader = gateway.client("r")
    reader.subscribe("t", properties=subscription_identifier(1))
    reader.subscribe("t", properties=subscription_identifier(2))
    gateway.client("w").publish("t")
    assert reader.receive() == ["PUBLISH t 'hi' SUBSCRIPTION_IDENTIFIER=2"]
    reader.subscribe("t")
    gateway.client("x").publish("t")
    assert reader.receive() == ["PUBLISH t 'hi'"]


@statements("3.3.4-5")
def test_the_copies_of_a_message_have_the_identifiers_of_their_own_subscriptions(
    gateway: Gateway, version: int
) -> None:
    reader = gateway.client("r")
    reader.subscribe("t", 1, properties=subscription_identifier(1))
    reader.subscribe("$share/group/t", 1, properties=subscription_identifier(2))
    gateway.client("w").publish("t", qos=1, id=1)
    assert sorted(line.split()[-1] for line in reader.receive()) == [
        "SUBSCRIPTION_IDENTIFIER=1",
        "SUBSCRIPTION_IDENTIFIER=2",
    ]


@statements("3.3.4-3")
def test_a_retained_message_has_the_identifier_of_its_subscription(gateway: Gateway, version: int) -> None:
    gateway.client("w").publish("t", retain=True)
    reader = gateway.client("r")
    reader.subscribe("#", options(0, retain_handling=2), properties=subscription_identifier(1))
    received = reader.subscribe("t", properties=subscription_identifier(2))
    assert received == ["SUBACK #1 0", "PUBLISH retain t 'hi' SUBSCRIPTION_IDENTIFIER=2"]


@statements("3.3.4-3")
def test_subscription_identifiers_survive_a_crash(gateway: Gateway, version: int) -> None:
    reader = gateway.client("r", is_clean=False, expiry=100)
    reader.subscribe("t", 1, properties=subscription_identifier(9))
    after = gateway.crashed()
    after.client("w").publish("t", qos=1, id=1)
    assert after.client("r", is_clean=False).backlog == worded(5, "PUBLISH q1 #1 t 'hi' SUBSCRIPTION_IDENTIFIER=9")
