"""Decoding of client packets other than CONNECT and PUBLISH, in each version."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway_mqtt.codec.decoding import (
    check_flags,
    decode_ack,
    decode_auth,
    decode_disconnect,
    decode_subscribe,
    decode_unsubscribe,
)
from gateway_mqtt.codec.encoding import ack
from gateway_mqtt.codec.errors import MqttError
from gateway_mqtt.codec.packet_types import PacketType
from gateway_mqtt.codec.packets import Auth, Disconnect, SubscriptionRequest, Unsubscribe
from gateway_mqtt.codec.properties import PropertyId
from gateway_mqtt.codec.reasons import SERVER_ONLY, ReasonCode, carried_by
from tests.protocols.mqtt.client_packets import block, filters, mqtt_text, text, tried, user_property

ACKS = [PacketType.PUBACK, PacketType.PUBREC, PacketType.PUBREL, PacketType.PUBCOMP]
MALFORMED, PROTOCOL_ERROR = ReasonCode.MALFORMED_PACKET, ReasonCode.PROTOCOL_ERROR


def reason_of(read: Callable[[], object]) -> ReasonCode:
    with pytest.raises(MqttError) as refusal:
        read()
    return refusal.value.reason


# ---------------------------------------------------------------- flags


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize("packet_type", sorted(set(PacketType) - {PacketType.WILL, PacketType.PUBLISH}))
def test_reserved_flags_must_have_their_fixed_values(version: int, packet_type: PacketType) -> None:
    requests = (PacketType.PUBREL, PacketType.SUBSCRIBE, PacketType.UNSUBSCRIBE)
    expected = 2 if packet_type in requests else 0
    check_flags(version, packet_type, expected)
    for flags in set(range(16)) - {expected}:
        assert reason_of(partial(check_flags, version, packet_type, flags)) is MALFORMED  # MQTT-2.1.3-1


@pytest.mark.parametrize("flags", [0, 2, 8, 10])
def test_3_1_may_repeat_a_request_with_dup(flags: int) -> None:
    assert decode_subscribe(3, flags, b"\0\1" + text("a") + b"\1").filters == (SubscriptionRequest("a", 1),)


@pytest.mark.parametrize("flags", [0, 1, 3, 10])
def test_later_versions_may_not_repeat_a_request_with_dup(flags: int) -> None:
    for version in (4, 5):
        subscribe = b"\0\1" + (b"\0" if version == 5 else b"") + text("a") + b"\1"
        assert reason_of(partial(decode_subscribe, version, flags, subscribe)) is MALFORMED
        assert reason_of(partial(decode_unsubscribe, version, flags, subscribe[:-1])) is MALFORMED


# ---------------------------------------------------------------- acknowledgements


@pytest.mark.parametrize("version", [3, 4, 5])
@pytest.mark.parametrize("packet_type", ACKS)
def test_an_acknowledgement_of_two_bytes_is_a_success(version: int, packet_type: PacketType) -> None:
    assert decode_ack(version, packet_type, b"\x12\x34") == (0x1234, ReasonCode.SUCCESS, None)
    assert decode_ack(version, packet_type, b"\xff\xff") == (0xFFFF, ReasonCode.SUCCESS, None)
    assert reason_of(partial(decode_ack, version, packet_type, b"\0\0")) is PROTOCOL_ERROR  # MQTT-2.2.1-3
    assert reason_of(partial(decode_ack, version, packet_type, b"\0")) is MALFORMED
    assert reason_of(partial(decode_ack, version, packet_type, b"")) is MALFORMED


@pytest.mark.parametrize("packet_type", ACKS)
def test_5_0_acknowledgements_may_have_a_reason_and_properties(packet_type: PacketType) -> None:
    for code in range(256):
        body = b"\0\1" + bytes((code,))
        if code in carried_by(packet_type):
            reason = ReasonCode(code)
            properties = block(b"\x1f" + text("why"), user_property("k", "v"))
            decoded = {PropertyId.REASON_STRING: "why", PropertyId.USER_PROPERTY: [("k", "v")]}
            assert decode_ack(5, packet_type, body) == (1, reason, None)
            assert decode_ack(5, packet_type, body + b"\0") == (1, reason, None)
            assert decode_ack(5, packet_type, body + properties) == (1, reason, decoded)
        else:
            assert reason_of(partial(decode_ack, 5, packet_type, body)) is PROTOCOL_ERROR


@pytest.mark.parametrize(
    "rest",
    [
        pytest.param(b"\0\1", id="properties cut short"),
        pytest.param(b"\0\0x", id="trailing bytes"),
        pytest.param(b"\0\5\x11\0\0\0\1", id="a property of CONNECT"),
        pytest.param(b"\0\x80", id="half a length"),
    ],
)
def test_malformed_ends_of_acknowledgements_are_refused(rest: bytes) -> None:
    for packet_type in ACKS:
        assert reason_of(partial(decode_ack, 5, packet_type, b"\0\1" + rest)) is MALFORMED


@pytest.mark.parametrize("version", [3, 4])
def test_3_x_acknowledgements_end_after_the_packet_identifier(version: int) -> None:
    assert reason_of(partial(decode_ack, version, PacketType.PUBACK, b"\0\1\0")) is MALFORMED


@given(st.sampled_from(ACKS), st.sampled_from([3, 4, 5]), st.integers(1, 65_535), mqtt_text, st.data())
def test_encoded_acknowledgements_are_decoded_to_the_same_values(
    packet_type: PacketType, version: int, packet_id: int, why: str, data: st.DataObject
) -> None:
    reason = data.draw(st.sampled_from(sorted(carried_by(packet_type)))) if version == 5 else ReasonCode.SUCCESS
    decoded = {PropertyId.REASON_STRING: why} if version == 5 and why else None
    packet = ack(packet_type, version, packet_id, reason, decoded)
    assert packet[0] == packet_type << 4 | (2 if packet_type is PacketType.PUBREL else 0)
    assert packet[1] == len(packet) - 2 or len(packet) > 129
    body = packet[2:] if len(packet) <= 129 else packet[3:]
    assert decode_ack(version, packet_type, body) == (packet_id, reason, decoded)


# ---------------------------------------------------------------- SUBSCRIBE


def subscribe(version: int, *requests: bytes, properties: bytes = b"\0", packet_id: bytes = b"\0\x0a") -> bytes:
    return packet_id + (properties if version == 5 else b"") + b"".join(requests)


def request(filter: str, options: int) -> bytes:
    return text(filter) + bytes((options,))


@pytest.mark.parametrize("version", [3, 4, 5])
def test_filters_keep_their_order(version: int) -> None:
    read = decode_subscribe(version, 2, subscribe(version, request("a/b", 1), request("c/#", 2), request("a/b", 0)))
    assert read.packet_id == 10
    assert read.properties == {}
    assert [(request.filter, request.qos) for request in read.filters] == [("a/b", 1), ("c/#", 2), ("a/b", 0)]


@pytest.mark.parametrize("options", range(256))
def test_every_combination_of_subscription_options(options: int) -> None:
    body = subscribe(5, request("a", options))
    qos, handling = options & 3, options >> 4 & 3
    if options & 0xC0:
        assert reason_of(partial(decode_subscribe, 5, 2, body)) in (MALFORMED, PROTOCOL_ERROR)  # MQTT-3.8.3-5
    elif qos == 3 or handling == 3:
        assert reason_of(partial(decode_subscribe, 5, 2, body)) is PROTOCOL_ERROR
    else:
        expected = SubscriptionRequest("a", qos, bool(options & 4), bool(options & 8), handling)
        assert decode_subscribe(5, 2, body).filters == (expected,)


@pytest.mark.parametrize("options", range(4, 256, 4))
def test_before_5_0_only_the_qos_is_decoded_from_the_options(options: int) -> None:
    assert reason_of(partial(decode_subscribe, 4, 2, subscribe(4, request("a", options)))) is MALFORMED
    assert decode_subscribe(3, 2, subscribe(3, request("a", options))).filters == (SubscriptionRequest("a", 0),)


@pytest.mark.parametrize("version", [3, 4, 5])
def test_a_subscription_with_qos_3_is_refused(version: int) -> None:
    assert reason_of(partial(decode_subscribe, version, 2, subscribe(version, request("a", 3)))) is PROTOCOL_ERROR


def test_no_local_on_a_shared_subscription_is_refused() -> None:
    body = subscribe(5, request("$share/g/a", 4))
    assert reason_of(partial(decode_subscribe, 5, 2, body)) is PROTOCOL_ERROR  # MQTT-3.8.3-4
    assert decode_subscribe(5, 2, subscribe(5, request("$share/g/a", 8))).filters[0].retain_as_published


def test_a_repeated_subscription_identifier_is_refused() -> None:
    body = subscribe(5, request("a", 0), properties=block(b"\x0b\xff\x7f"))
    assert decode_subscribe(5, 2, body).properties == {PropertyId.SUBSCRIPTION_IDENTIFIER: [16_383]}
    twice = subscribe(5, request("a", 0), properties=block(b"\x0b\1", b"\x0b\2"))
    assert reason_of(partial(decode_subscribe, 5, 2, twice)) is PROTOCOL_ERROR


@pytest.mark.parametrize("version", [3, 4, 5])
def test_a_request_without_a_filter_is_refused(version: int) -> None:
    assert reason_of(partial(decode_subscribe, version, 2, subscribe(version))) is PROTOCOL_ERROR  # MQTT-3.8.3-2
    assert reason_of(partial(decode_unsubscribe, version, 2, subscribe(version))) is PROTOCOL_ERROR  # MQTT-3.10.3-2
    nameless = subscribe(version, request("a", 0), packet_id=b"\0\0")
    assert reason_of(partial(decode_subscribe, version, 2, nameless)) is PROTOCOL_ERROR  # MQTT-2.2.1-3
    assert reason_of(partial(decode_unsubscribe, version, 2, nameless[:-1])) is PROTOCOL_ERROR
    assert reason_of(partial(decode_subscribe, version, 2, subscribe(version, text("a")))) is MALFORMED
    assert reason_of(partial(decode_subscribe, version, 2, subscribe(version, b"\0\1\xff\0"))) is MALFORMED


@given(st.sampled_from([3, 4, 5]), st.lists(st.tuples(filters, st.integers(0, 2)), min_size=1, max_size=5))
def test_an_encoded_subscribe_is_decoded_to_the_same_values(version: int, wanted: list[tuple[str, int]]) -> None:
    read = decode_subscribe(version, 2, subscribe(version, *(request(filter, qos) for filter, qos in wanted)))
    assert [(request.filter, request.qos) for request in read.filters] == wanted
    undone = decode_unsubscribe(version, 2, subscribe(version, *(text(filter) for filter, _ in wanted)))
    assert undone == Unsubscribe(10, {}, tuple(filter for filter, _ in wanted))


def test_unsubscribe_may_have_user_properties() -> None:
    body = subscribe(5, text("a"), properties=block(user_property("k", "v")))
    assert decode_unsubscribe(5, 2, body).properties == {PropertyId.USER_PROPERTY: [("k", "v")]}


# ---------------------------------------------------------------- DISCONNECT and AUTH


@pytest.mark.parametrize("version", [3, 4, 5])
def test_an_empty_disconnect_is_a_success(version: int) -> None:
    assert decode_disconnect(version, 0, b"") == Disconnect(ReasonCode.SUCCESS, {})


@pytest.mark.parametrize("version", [3, 4])
def test_before_5_0_a_disconnect_must_be_empty(version: int) -> None:
    assert reason_of(partial(decode_disconnect, version, 0, b"\0")) is MALFORMED


def test_the_reasons_that_a_client_may_send_in_a_disconnect() -> None:
    allowed = carried_by(PacketType.DISCONNECT) - SERVER_ONLY
    assert ReasonCode.DISCONNECT_WITH_WILL_MESSAGE in allowed
    for code in range(256):
        if code in allowed:
            assert decode_disconnect(5, 0, bytes((code,))) == Disconnect(ReasonCode(code), {})
        else:
            assert reason_of(partial(decode_disconnect, 5, 0, bytes((code,)))) is PROTOCOL_ERROR  # MQTT-3.14.2-1


def test_a_disconnect_with_properties() -> None:
    body = b"\4" + block(b"\x11\0\0\0\x3c", b"\x1f" + text("bye"))
    decoded = {PropertyId.SESSION_EXPIRY_INTERVAL: 60, PropertyId.REASON_STRING: "bye"}
    assert decode_disconnect(5, 0, body) == Disconnect(ReasonCode.DISCONNECT_WITH_WILL_MESSAGE, decoded)
    assert reason_of(partial(decode_disconnect, 5, 0, body + b"x")) is MALFORMED
    assert reason_of(partial(decode_disconnect, 5, 1, body)) is MALFORMED  # MQTT-3.14.1-1


METHOD = b"\x15" + text("SCRAM-SHA-256")


@pytest.mark.parametrize("reason", [ReasonCode.CONTINUE_AUTHENTICATION, ReasonCode.RE_AUTHENTICATE])
def test_an_auth_must_have_an_authentication_method(reason: ReasonCode) -> None:
    decoded = {PropertyId.AUTHENTICATION_METHOD: "SCRAM-SHA-256", PropertyId.AUTHENTICATION_DATA: b"x"}
    body = bytes((reason,)) + block(METHOD, b"\x16" + text("x"))
    assert decode_auth(5, 0, body) == Auth(reason, decoded)
    assert reason_of(partial(decode_auth, 5, 0, bytes((reason,)) + block(b"\x16" + text("x")))) is PROTOCOL_ERROR
    assert reason_of(partial(decode_auth, 5, 0, bytes((reason,)))) is PROTOCOL_ERROR
    assert reason_of(partial(decode_auth, 5, 1, body)) is MALFORMED  # MQTT-3.15.1-1


@pytest.mark.parametrize("body", [b"", b"\0" + block(METHOD), b"\x01" + block(METHOD), b"\x87" + block(METHOD)])
def test_reasons_of_the_server_in_an_auth_are_refused(body: bytes) -> None:
    assert reason_of(partial(decode_auth, 5, 0, body)) is PROTOCOL_ERROR  # MQTT-3.15.2-1


@pytest.mark.parametrize("version", [3, 4])
def test_auth_before_5_0_is_refused(version: int) -> None:
    assert reason_of(partial(decode_auth, version, 0, b"\x18" + block(METHOD))) is PROTOCOL_ERROR


# ---------------------------------------------------------------- arbitrary bytes

READERS: list[Callable[[int, int, bytes], Any]] = [
    decode_subscribe,
    decode_unsubscribe,
    decode_disconnect,
    decode_auth,
    *(
        lambda version, flags, body, packet_type=packet_type: decode_ack(version, packet_type, body)
        for packet_type in ACKS
    ),
]


@given(
    st.binary(max_size=40) | st.binary(max_size=20).map(lambda rest: b"\0\1\0\0\1a" + rest),
    st.sampled_from([3, 4, 5]),
    st.sampled_from([0, 2]) | st.integers(0, 15),
)
def test_arbitrary_bytes_are_a_packet_or_an_mqtt_error(body: bytes, version: int, flags: int) -> None:
    for read in READERS:
        outcome = tried(partial(read, version, flags, body))
        assert not isinstance(outcome, MqttError) or outcome.reason in (MALFORMED, PROTOCOL_ERROR)
