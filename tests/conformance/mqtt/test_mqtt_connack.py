"""CONNACK: session present, refusals, sizes, aliases, information, keep alive (3.1.2, 3.2)."""

from dataclasses import replace
from typing import Any

import pytest

from gateway.kernel.broker.connections import TICKS_PER_S
from gateway.kernel.messages.message import Value
from gateway_mqtt.codec.properties import PropertyId
from gateway_mqtt.server import MqttServer
from tests.conformance.mqtt.edge import transport
from tests.conformance.mqtt.tables import CLOSED, statements, worded
from tests.protocols.mqtt.dialogue import Client, Gateway
from tests.protocols.mqtt.frame_reader import FrameReader, ReceivedPacket
from tests.protocols.mqtt.packets import (
    FIVE,
    WRITERS,
    Will,
    authentication,
    maximum_packet_size,
    packet,
    reason_string,
    request_problem_information,
    request_response_information,
    topic_alias,
    topic_alias_maximum,
    user_property,
)


@statements("3.2.2-1", "3.2.0-1")
@pytest.mark.parametrize("is_present", [False, True])
def test_connack_flags_contain_session_present_only(version: int, is_present: bool) -> None:
    gateway = Gateway()
    if is_present:
        gateway.client("c", version, is_clean=False, expiry=100).lose()
    client = gateway.new_client(version)
    client.machine.receive(client.write.connect("c", is_clean=False))
    client.gateway.end_turn()
    [received] = client.receive_frames()  # the frame reader accepts only flags 0 and 1
    assert received.line == ("CONNACK present" if is_present else "CONNACK")


@statements("3.2.2-6 3.2.2-7 4.13.2-1", "3.2.2-4 3.2.2-5")
def test_a_refusal_has_no_session_present_and_closes_the_connection(gateway: Gateway, version: int) -> None:
    gateway.client("c", version, is_clean=False, expiry=100).lose()
    client = gateway.new_client(version)
    received = client.connect("c", is_clean=False, username="guest", password=b"wrong")
    assert received == ["CONNACK BAD_USER_NAME_OR_PASSWORD" if version == 5 else "CONNACK 4", CLOSED]


@statements("3.2.2-8")
def test_a_refusal_has_a_reason_of_the_table(gateway: Gateway, version: int) -> None:
    gateway.add_user("mute", "mute")
    gateway.broker.directory.remove_permission("/", "mute")
    refusals = [
        (FIVE.connect("c", username="guest", password=b"no"), "BAD_USER_NAME_OR_PASSWORD"),
        (FIVE.connect("c", username="nowhere:guest", password=b"guest"), "BAD_USER_NAME_OR_PASSWORD"),
        (FIVE.connect("c", username="mute", password=b"mute"), "NOT_AUTHORIZED"),
        (FIVE.connect("c", properties=authentication("nosuch")), "BAD_AUTHENTICATION_METHOD"),
        (FIVE.connect("c" * 201), "CLIENT_IDENTIFIER_NOT_VALID"),
        (FIVE.connect("c", level=7), "UNSUPPORTED_PROTOCOL_VERSION"),
        (FIVE.connect("c", flags=1), "MALFORMED_PACKET"),
        (FIVE.connect("c", properties=b"\x21\0\0"), "PROTOCOL_ERROR"),
    ]
    for sent, reason in refusals:
        assert gateway.new_client().request(sent) == [f"CONNACK {reason}", CLOSED]


@statements("", "3.2.2-6")
def test_a_refusal_without_a_return_code_closes_without_an_answer(gateway: Gateway, version: int) -> None:
    client = gateway.new_client(version)
    assert client.request(client.write.connect("c", will=Will("w/+"))) == [CLOSED]


@statements("3.2.2-9 3.2.2-10 3.2.2-12 3.2.2-13")
def test_supported_features_are_not_announced_as_unavailable(gateway: Gateway, version: int) -> None:
    client = gateway.client("c", will=Will("w", qos=2, retain=True))
    denials = {PropertyId.MAXIMUM_QOS, PropertyId.RETAIN_AVAILABLE, PropertyId.WILDCARD_SUBSCRIPTION_AVAILABLE,
               PropertyId.SUBSCRIPTION_IDENTIFIER_AVAILABLE, PropertyId.SHARED_SUBSCRIPTION_AVAILABLE}  # fmt: skip
    assert not denials & {key for key, _ in client.welcome.properties}
    assert client.subscribe("t", 2) == ["SUBACK #1 2"]
    assert client.publish("t", qos=2, id=1) == ["PUBLISH q2 #1 t 'hi'", "PUBREC #1"]


# ---------------------------------------------------------------- sizes


@statements("3.2.2-15")
def test_a_packet_larger_than_maximum_packet_size_ends_the_connection(version: int) -> None:
    client = Gateway(max_packet_size=1000).client("c")
    assert client.welcome.all(PropertyId.MAXIMUM_PACKET_SIZE) == [1000]
    assert client.publish("t", b"x" * 993) == []  # a head of 3, a topic of 3, properties of 1: 1000 in all
    assert client.publish("t", b"x" * 994) == ["DISCONNECT PACKET_TOO_LARGE", CLOSED]


@statements("3.2.2-15")
def test_a_packet_that_is_too_large_is_refused_before_it_is_complete(version: int) -> None:
    client = Gateway(max_packet_size=1000).client("c")
    assert client.request(b"\x30\xff\xff\xff\x7f") == ["DISCONNECT PACKET_TOO_LARGE", CLOSED]


@statements("3.1.2-24 3.1.2-25")
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_message_that_is_too_large_for_the_client_counts_as_delivered(
    gateway: Gateway, version: int, qos: int
) -> None:
    client = gateway.client("c", is_clean=False, expiry=100, properties=maximum_packet_size(30))
    client.subscribe("t", qos)
    writer = gateway.client("w")
    overhead = 2 + 3 + 1 + (2 if qos else 0)
    for number, size in enumerate([30 - overhead, 31 - overhead, 1000, 1]):
        writer.publish("t", b"x" * size, qos=2, id=number + 1)
        writer.pubrel(number + 1)
    received = client.receive_frames()
    assert [packet.size for packet in received] == [30, overhead + 1]
    client.lose()
    back = gateway.client("c", is_clean=False, expiry=100)
    assert len(back.backlog) == (2 if qos else 0)  # the earlier, unacknowledged messages


@statements("3.1.2-24 3.1.2-25")
def test_a_message_that_is_too_large_does_not_count_against_receive_maximum(gateway: Gateway, version: int) -> None:
    properties = maximum_packet_size(30) + b"\x21\0\1"
    client = gateway.client("c", properties=properties)
    client.subscribe("t", 1)
    writer = gateway.client("w")
    for number in range(5):
        writer.publish("t", b"x" * 100, qos=1, id=number + 1)
    writer.publish("t", qos=1, id=9)
    [line] = client.receive()
    assert line.startswith("PUBLISH q1")


@statements("3.1.2-24")
@pytest.mark.parametrize(
    ("size", "received"),
    [
        (13, "CONNACK MAXIMUM_PACKET_SIZE=16777216 TOPIC_ALIAS_MAXIMUM=16"),
        (12, "CONNACK MAXIMUM_PACKET_SIZE=16777216"),
        (9, "CONNACK"),
        (5, "CONNACK"),
    ],
)
def test_a_connack_omits_optional_limits_that_exceed_the_maximum_packet_size(
    gateway: Gateway, version: int, size: int, received: str
) -> None:
    client = gateway.new_client()
    assert client.request(FIVE.connect("c", properties=maximum_packet_size(size))) == [received]


@statements("3.1.2-24")
@pytest.mark.parametrize(("size", "received"), [(4, ["closed"]), (20, ["CONNACK PACKET_TOO_LARGE", "closed"])])
def test_without_room_for_required_properties_the_connect_is_refused(
    gateway: Gateway, version: int, size: int, received: list[str]
) -> None:
    client = gateway.new_client()
    client_id = "" if size == 20 else "c"  # the assigned one takes 24 bytes
    gateway.settings = replace(gateway.settings, token=lambda: "t" * 20)
    client.machine.settings = gateway.settings
    assert client.request(FIVE.connect(client_id, properties=maximum_packet_size(size))) == received
    assert len(gateway.vhost.sessions) == 0


@statements("3.1.2-24")
def test_a_request_whose_answer_is_too_large_for_the_client_is_refused(gateway: Gateway, version: int) -> None:
    for write in (FIVE.subscribe, FIVE.unsubscribe):
        filters = [f"t/{number}" for number in range(4)]
        given: list[Any] = [(filter, 1) for filter in filters] if write == FIVE.subscribe else filters
        client = gateway.client("c", is_clean=False, expiry=100, properties=maximum_packet_size(8))
        assert client.request(write(*given[:3]))[0].split()[0] in ("SUBACK", "UNSUBACK")
        assert client.request(write(*given)) == ["DISCONNECT PACKET_TOO_LARGE", "closed"]
    session = gateway.vhost.sessions.get("c")
    assert session is not None
    assert len(session.subscriptions) == 0


@statements("3.2.2-19 3.2.2-20 3.1.2-24")
def test_a_refusal_omits_the_reason_string_that_exceeds_the_maximum_packet_size(gateway: Gateway, version: int) -> None:
    for size, strings in ((1000, 1), (20, 0)):
        client = gateway.new_client()
        client.machine.receive(FIVE.connect("c" * 201, properties=maximum_packet_size(size)))
        refusal, _ = client.receive_frames()
        assert refusal.line == "CONNACK BAD_USER_NAME_OR_PASSWORD" or refusal.size <= size
        assert len(refusal.all(PropertyId.REASON_STRING)) == strings
        assert not refusal.all(PropertyId.USER_PROPERTY)


# ---------------------------------------------------------------- topic aliases


@statements("3.2.2-17 3.3.2-9")
@pytest.mark.parametrize("alias", [4, 65_535])
def test_a_client_must_respect_the_topic_alias_maximum_of_the_server(version: int, alias: int) -> None:
    client = Gateway(topic_alias_max=3).client("c")
    assert client.welcome.all(PropertyId.TOPIC_ALIAS_MAXIMUM) == [3]
    assert client.publish("t", properties=topic_alias(3)) == []
    assert client.publish("t", properties=topic_alias(alias)) == ["DISCONNECT TOPIC_ALIAS_INVALID", CLOSED]


@statements("3.2.2-18")
def test_a_client_without_topic_aliases_may_not_use_one(version: int) -> None:
    client = Gateway(topic_alias_max=0).client("c")
    assert client.welcome.all(PropertyId.TOPIC_ALIAS_MAXIMUM) in ([], [0])
    assert client.publish("t", properties=topic_alias(1)) == ["DISCONNECT TOPIC_ALIAS_INVALID", CLOSED]


@statements("3.1.2-26 3.3.2-11")
def test_the_server_respects_the_topic_alias_maximum_of_the_client(gateway: Gateway, version: int) -> None:
    client = gateway.client("c", properties=topic_alias_maximum(2))
    client.subscribe("t/+")
    writer = gateway.client("w")
    for topic in ("t/a", "t/b", "t/c", "t/a", "t/b", "t/c"):
        writer.publish(topic, topic.encode())
    assert client.receive() == [
        "PUBLISH t/a 't/a' TOPIC_ALIAS=1",
        "PUBLISH t/b 't/b' TOPIC_ALIAS=2",
        "PUBLISH t/c 't/c'",
        "PUBLISH  't/a' TOPIC_ALIAS=1",
        "PUBLISH  't/b' TOPIC_ALIAS=2",
        "PUBLISH t/c 't/c'",
    ]


@statements("3.1.2-27")
@pytest.mark.parametrize("properties", [b"", topic_alias_maximum(0)])
def test_a_client_without_topic_alias_maximum_gets_no_aliases(
    gateway: Gateway, version: int, properties: bytes
) -> None:
    client = gateway.client("c", properties=properties)
    client.subscribe("t")
    gateway.client("w").publish("t", properties=topic_alias(1))
    assert client.receive() == ["PUBLISH t 'hi'"]


# ---------------------------------------------------------------- information


@statements("3.1.2-28")
@pytest.mark.parametrize("properties", [b"", request_response_information(0)])
def test_response_information_is_not_sent_without_a_request(gateway: Gateway, version: int, properties: bytes) -> None:
    client = gateway.client("c", properties=properties)
    assert client.welcome.all(PropertyId.RESPONSE_INFORMATION) == []


def refused(properties: bytes) -> list[ReceivedPacket]:
    """Return the answers to requests that are refused, or refused in part, for a client with these properties."""
    gateway = Gateway(disconnect_on_unauthorized=False)
    gateway.add_user("reader", "reader", may=("^$", "^$", "^$"))
    client = gateway.client("c", username="reader", password=b"reader", properties=properties)
    sent = [
        FIVE.publish("t", qos=1, id=1),
        FIVE.publish("t", qos=2, id=2),
        FIVE.publish("t", b"\xff", qos=1, id=3, properties=b"\x01\x01"),
        FIVE.pubrel(9),
        FIVE.subscribe(("t", 0), ("#/t", 0)),
        FIVE.unsubscribe("t", "#/t"),
    ]
    client.machine.receive(b"".join(sent))
    received = client.receive_frames()
    kinds = [packet.line.split()[0] for packet in received]
    assert sorted(kinds) == ["PUBACK", "PUBACK", "PUBCOMP", "PUBREC", "SUBACK", "UNSUBACK"]
    return received


@statements("3.1.2-29")
def test_a_client_without_problem_information_gets_no_reason_strings(version: int) -> None:
    assert [packet.properties for packet in refused(request_problem_information(0))] == [[]] * 6


@pytest.mark.parametrize("properties", [b"", request_problem_information(1)])
def test_a_client_with_problem_information_gets_reason_strings(properties: bytes) -> None:
    for received in refused(properties):
        assert [key for key, _ in received.properties] == [PropertyId.REASON_STRING], received.line
        assert all(received.all(PropertyId.REASON_STRING))


@statements("3.4.2-2 3.5.2-2 3.7.2-2 3.9.2-1 3.11.2-1")
def test_a_reason_string_that_makes_a_packet_too_large_is_omitted(version: int) -> None:
    assert [packet.properties for packet in refused(maximum_packet_size(20))] == [[]] * 6


def test_a_publish_that_a_queue_refuses_gets_a_reason_string(gateway: Gateway) -> None:
    limits: dict[str, Value] = {"x-max-length": 0, "x-overflow": "reject-publish"}
    full = gateway.vhost.declare_queue("full", is_durable=True, arguments=limits)
    gateway.vhost.bind(gateway.vhost.exchange("amq.topic"), full, "t")
    client = gateway.client("c")
    client.machine.receive(FIVE.publish("t", qos=1, id=1))
    (puback,) = client.receive_frames()
    assert puback.line == "PUBACK #1 QUOTA_EXCEEDED"
    assert puback.all(PropertyId.REASON_STRING) == ["a queue does not take the message"]


@statements("3.1.2-29 3.14.2-1")
@pytest.mark.parametrize(("properties", "strings"), [(b"", 1), (b"\x17\x01", 1), (b"\x17\x00", 0)])
def test_a_disconnect_has_a_reason_string_unless_the_client_declined_it(
    gateway: Gateway, version: int, properties: bytes, strings: int
) -> None:
    client = gateway.client("c", properties=properties)
    client.machine.receive(packet(0xD0))
    disconnect, _ = client.receive_frames()
    assert disconnect.line == "DISCONNECT PROTOCOL_ERROR"
    assert len(disconnect.all(PropertyId.REASON_STRING)) == strings


@statements("3.1.2-29")
def test_user_properties_of_messages_are_sent_without_problem_information(gateway: Gateway, version: int) -> None:
    client = gateway.client("c", properties=request_problem_information(0))
    client.subscribe("t")
    gateway.client("w").publish("t", properties=user_property("a", "b"))
    assert client.receive() == ["PUBLISH t 'hi' USER_PROPERTY=('a', 'b')"]


@statements("3.4.2-1 3.6.2-1")
def test_reason_strings_of_clients_are_accepted(gateway: Gateway, version: int) -> None:
    client = gateway.client("c")
    client.subscribe("t", 2)
    gateway.client("w").publish("t", qos=1, id=1)
    client.receive()
    expected = reason_string("no") + user_property("a", "b")
    assert client.request(FIVE.puback(1, 0x80, expected), FIVE.pubrel(1, 0x92, expected), FIVE.pingreq()) == [
        "PUBCOMP #1 PACKET_IDENTIFIER_NOT_FOUND",
        "PINGRESP",
    ]


# ---------------------------------------------------------------- keep alive


TIMED_OUT = "DISCONNECT KEEP_ALIVE_TIMEOUT"


def connected_server(gateway: Gateway, version: int, keep_alive: int) -> tuple[MqttServer, Any]:
    """Return the server side of a connection, and its transport."""
    server, wire = MqttServer(gateway.settings, gateway.turn), transport()
    server.makeConnection(wire)  # type: ignore[no-untyped-call]
    server.dataReceived(WRITERS[version].connect("c", keep_alive=keep_alive, will=Will("w")))
    gateway.settle()
    wire.clear()
    return server, wire


def wait(gateway: Gateway, server: MqttServer, seconds: float) -> None:
    for _ in range(round(seconds * TICKS_PER_S)):
        server.tick()
    gateway.settle()


@statements("3.1.2-22 3.2.2-22", "3.1.2-24")
def test_a_client_that_is_silent_for_one_and_a_half_times_its_keep_alive_is_disconnected(
    gateway: Gateway, version: int
) -> None:
    server, wire = connected_server(gateway, version, keep_alive=10)
    wait(gateway, server, 15)
    assert not wire.disconnecting
    wait(gateway, server, 2)
    assert wire.disconnecting
    assert [received.line for received in FrameReader(version).feed(wire.value())] == worded(version, TIMED_OUT)


@statements("3.1.2-22", "3.1.2-24")
def test_any_packet_restarts_the_keep_alive(gateway: Gateway, version: int) -> None:
    server, wire = connected_server(gateway, version, keep_alive=10)
    for _ in range(5):
        wait(gateway, server, 14)
        server.dataReceived(WRITERS[version].publish("t"))
    assert not wire.disconnecting


@statements("3.1.2-22", "3.1.2-24")
def test_a_keep_alive_timeout_counts_as_a_network_failure(gateway: Gateway, version: int) -> None:
    watcher = gateway.client("watcher")
    watcher.subscribe("w")
    server, _ = connected_server(gateway, version, keep_alive=10)
    wait(gateway, server, 17)
    assert watcher.receive() == ["PUBLISH w 'gone'"]


@statements("3.1.2-22", "3.1.2-24")
def test_a_keep_alive_of_0_disables_the_timeout(gateway: Gateway, version: int) -> None:
    server, wire = connected_server(gateway, version, keep_alive=0)
    wait(gateway, server, 100_000)
    assert not wire.disconnecting


@statements("3.2.2-22")
@pytest.mark.parametrize(("asked", "expected"), [(10, []), (20, []), (60, [20]), (0, [20])])
def test_a_server_keep_alive_is_sent_if_it_differs(version: int, asked: int, expected: list[int]) -> None:
    client: Client = Gateway(keep_alive_max_s=20).client("c", keep_alive=asked)
    assert client.welcome.all(PropertyId.SERVER_KEEP_ALIVE) == expected
    assert client.machine.keep_alive_s == (expected or [asked])[0]


@statements("3.12.4-1", "3.12.4-1")
def test_a_ping_is_answered(gateway: Gateway, version: int) -> None:
    client = gateway.client("c", version)
    assert client.request(client.write.pingreq(), client.write.pingreq()) == worded(version, "PINGRESP", "PINGRESP")
