"""Decoding of PUBLISH: topic, identifier, properties and payload, valid and invalid (3.3)."""

import struct
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway_mqtt.codec.data_types import varint
from gateway_mqtt.codec.errors import MqttError
from gateway_mqtt.codec.packet_types import PacketType
from gateway_mqtt.codec.properties import PropertyId, read_block, write_block
from gateway_mqtt.codec.publish import (
    PublishProperties,
    decode_publish,
    scan_publish_properties,
    will_block,
    without_alias,
    without_expiry,
)
from gateway_mqtt.codec.reasons import ReasonCode
from tests.protocols.mqtt.client_packets import mqtt_text, text, topics, tried, user_property

MALFORMED, PROTOCOL_ERROR = ReasonCode.MALFORMED_PACKET, ReasonCode.PROTOCOL_ERROR


def body(version: int, qos: int, topic: bytes, packet_id: int, block: bytes, payload: bytes) -> bytes:
    identifier = struct.pack(">H", packet_id) if qos else b""
    properties = varint(len(block)) + block if version == 5 else b""
    return text(topic) + identifier + properties + payload


@given(
    st.sampled_from([3, 4, 5]),
    st.sampled_from([0, 1, 2]),
    topics,
    st.integers(1, 65_535),
    st.binary(max_size=200),
    st.binary(max_size=20),
    st.binary(max_size=4),
)
def test_the_parts_of_a_publish_are_decoded(
    version: int, qos: int, topic: str, packet_id: int, block: bytes, payload: bytes, around: bytes
) -> None:
    block = block if version == 5 else b""
    octets = body(version, qos, topic.encode(), packet_id, block, payload)
    start, end = len(around), len(around) + len(octets)
    name, identifier, block_at, payload_at = decode_publish(version, qos << 1, around + octets + around, start, end)
    assert (name, identifier) == (topic.encode(), packet_id if qos else 0)
    assert (around + octets)[block_at:payload_at] == block
    assert (around + octets)[payload_at:end] == payload


@given(st.sampled_from([3, 4, 5]), st.sampled_from([0, 2, 4]), st.data())
def test_a_publish_that_is_cut_before_the_payload_is_malformed(version: int, flags: int, data: st.DataObject) -> None:
    octets = body(version, flags >> 1, b"topic", 7, bytes(130), b"")
    end = data.draw(st.integers(0, len(octets) - 1))
    with pytest.raises(MqttError) as refusal:
        decode_publish(version, flags, octets + b"next packet", 0, end)
    assert refusal.value.reason is MALFORMED


@pytest.mark.parametrize("version", [3, 4, 5])
@pytest.mark.parametrize("flags", range(16))
def test_all_combinations_of_flags(version: int, flags: int) -> None:
    qos, is_again = flags >> 1 & 3, flags & 8
    octets = body(version, qos, b"t", 1, b"", b"x")
    is_legal = qos < 3 and not (is_again and qos == 0 and version > 3)  # MQTT-3.3.1-4, 3.3.1-2
    outcome = tried(partial(decode_publish, version, flags, octets, 0, len(octets)))
    if is_legal:
        assert isinstance(outcome, tuple)
        assert outcome[:2] == (b"t", 1 if qos else 0)
    else:
        assert isinstance(outcome, MqttError)
        assert outcome.reason is MALFORMED


@pytest.mark.parametrize("qos", [1, 2])
def test_packet_identifier_0_is_a_protocol_error(qos: int) -> None:
    octets = body(4, qos, b"t", 0, b"", b"x")
    with pytest.raises(MqttError) as refusal:
        decode_publish(4, qos << 1, octets, 0, len(octets))
    assert refusal.value.reason is PROTOCOL_ERROR  # MQTT-2.2.1-3


def test_a_property_length_in_too_many_bytes_is_malformed() -> None:
    with pytest.raises(MqttError, match="0 encoded in 2 bytes"):
        decode_publish(5, 0, text("t") + b"\x80\x00", 0, 5)


@given(st.binary(max_size=40), st.integers(0, 15), st.sampled_from([3, 4, 5]))
def test_arbitrary_bytes_are_a_publish_or_an_mqtt_error(octets: bytes, flags: int, version: int) -> None:
    outcome = tried(lambda: decode_publish(version, flags, octets, 0, len(octets)))
    if isinstance(outcome, MqttError):
        assert outcome.reason in (MALFORMED, PROTOCOL_ERROR)
    else:
        assert len(outcome[0]) + 2 <= outcome[2] <= outcome[3] <= len(octets)


# ---------------------------------------------------------------- properties


def values_of(properties: PublishProperties) -> list[object]:
    return [getattr(properties, name) for name in dir(properties) if not name.startswith("_")]


def test_all_properties_that_a_client_may_send() -> None:
    block = (
        b"\x01\x01"
        + b"\x02\0\0\0\x0a"
        + b"\x23\0\x05"
        + b"\x08"
        + text("re/ply")
        + b"\x09"
        + text(b"\0\xff")
        + user_property("b", "1")
        + b"\x03"
        + text("text/plain")
        + user_property("a", "2")
        + user_property("b", "3")
    )
    properties = scan_publish_properties(block)
    expected = PublishProperties(1, 10, 5, "re/ply", b"\0\xff", (("b", "1"), ("a", "2"), ("b", "3")), "text/plain")
    assert values_of(properties) == values_of(expected)


def test_a_publish_without_properties() -> None:
    assert values_of(scan_publish_properties(b"")) == values_of(PublishProperties())
    assert scan_publish_properties(b"\x02\0\0\0\0").message_expiry_s == 0


@pytest.mark.parametrize(
    ("block", "reason"),
    [
        pytest.param(b"\x0b\1", PROTOCOL_ERROR, id="MQTT-3.3.4-6: a subscription identifier"),
        pytest.param(
            b"\x08" + text("a/+"), ReasonCode.TOPIC_NAME_INVALID, id="MQTT-3.3.2-14: wildcards in a response topic"
        ),
        pytest.param(b"\x08" + text(""), ReasonCode.TOPIC_NAME_INVALID, id="MQTT-4.7.3-1: an empty response topic"),
        pytest.param(b"\x23\0\0", ReasonCode.TOPIC_ALIAS_INVALID, id="MQTT-3.3.2-8: alias 0"),
        pytest.param(b"\x01\2", PROTOCOL_ERROR, id="payload format 2"),
        pytest.param(b"\x01\1\x01\1", PROTOCOL_ERROR, id="twice"),
        pytest.param(b"\x18\0\0\0\1", MALFORMED, id="a will delay"),
        pytest.param(b"\x03\0", MALFORMED, id="cut short"),
    ],
)
def test_properties_that_a_client_may_not_send_are_refused(block: bytes, reason: ReasonCode) -> None:
    with pytest.raises(MqttError) as refusal:
        scan_publish_properties(block)
    assert refusal.value.reason is reason


@given(st.binary(max_size=40))
def test_an_arbitrary_property_block_is_decoded_or_refused(block: bytes) -> None:
    outcome = tried(lambda: scan_publish_properties(block))
    assert isinstance(outcome, PublishProperties) or outcome.reason.is_error


@given(
    st.lists(st.tuples(mqtt_text, mqtt_text), min_size=1, max_size=3),
    st.integers(1, 65_535),
    st.integers(0, 2**32 - 1),
    st.permutations(list(range(3))),
)
def test_removing_a_property_keeps_the_others(
    pairs: list[tuple[str, str]], alias: int, expiry_s: int, order: list[int]
) -> None:
    items = [
        (PropertyId.USER_PROPERTY, pairs),
        (PropertyId.TOPIC_ALIAS, alias),
        (PropertyId.MESSAGE_EXPIRY_INTERVAL, expiry_s),
    ]
    properties = dict(items[index] for index in order)
    block = write_block(properties)
    for take_out, gone in (
        (without_alias, PropertyId.TOPIC_ALIAS),
        (without_expiry, PropertyId.MESSAGE_EXPIRY_INTERVAL),
    ):
        left = take_out(block)
        assert read_block(left, 0, len(left), PacketType.PUBLISH) == {
            k: v for k, v in properties.items() if k is not gone
        }
        assert take_out(left) == left
    assert without_alias(b"") == without_expiry(b"") == b""


def test_a_will_is_published_without_its_delay_property() -> None:
    properties = {PropertyId.WILL_DELAY_INTERVAL: 5, PropertyId.CONTENT_TYPE: "x"}
    assert will_block(properties) == b"\x03" + text("x")
    assert properties == {PropertyId.WILL_DELAY_INTERVAL: 5, PropertyId.CONTENT_TYPE: "x"}
