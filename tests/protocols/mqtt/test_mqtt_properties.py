"""Properties of packets: their carriers, repetitions and values (MQTT 5.0, 2.2.2)."""

from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway_mqtt.codec.data_types import LARGEST_VARINT
from gateway_mqtt.codec.errors import MqttError
from gateway_mqtt.codec.packet_types import PacketType
from gateway_mqtt.codec.properties import (
    DEFINITIONS,
    Properties,
    PropertyId,
    decode_properties,
    encode_properties,
    read_block,
    write_block,
)
from gateway_mqtt.codec.reasons import ReasonCode
from tests.protocols.mqtt.client_packets import mqtt_text, tried

ANSWERS = "CONNACK PUBACK PUBREC PUBREL PUBCOMP SUBACK UNSUBACK DISCONNECT AUTH"

#: Table 2-4: identifier, a value as bytes, the same value, the packets.
TABLE: list[tuple[int, str, Any, str]] = [
    (0x01, "01", 1, "PUBLISH WILL"),
    (0x02, "0000000a", 10, "PUBLISH WILL"),
    (0x03, "0001 61", "a", "PUBLISH WILL"),
    (0x08, "0001 61", "a", "PUBLISH WILL"),
    (0x09, "0002 00ff", b"\x00\xff", "PUBLISH WILL"),
    (0x0B, "8001", [128], "PUBLISH SUBSCRIBE"),
    (0x11, "ffffffff", 0xFFFFFFFF, "CONNECT CONNACK DISCONNECT"),
    (0x12, "0001 61", "a", "CONNACK"),
    (0x13, "000a", 10, "CONNACK"),
    (0x15, "0001 61", "a", "CONNECT CONNACK AUTH"),
    (0x16, "0001 61", b"a", "CONNECT CONNACK AUTH"),
    (0x17, "00", 0, "CONNECT"),
    (0x18, "00000001", 1, "WILL"),
    (0x19, "01", 1, "CONNECT"),
    (0x1A, "0001 61", "a", "CONNACK"),
    (0x1C, "0001 61", "a", "CONNACK DISCONNECT"),
    (0x1F, "0001 61", "a", ANSWERS),
    (0x21, "0001", 1, "CONNECT CONNACK"),
    (0x22, "0000", 0, "CONNECT CONNACK"),
    (0x23, "ffff", 0xFFFF, "PUBLISH"),
    (0x24, "01", 1, "CONNACK"),
    (0x25, "00", 0, "CONNACK"),
    (0x26, "0001 61 0000", [("a", "")], ANSWERS + " CONNECT PUBLISH WILL SUBSCRIBE UNSUBSCRIBE"),
    (0x27, "00000001", 1, "CONNECT CONNACK"),
    (0x28, "00", 0, "CONNACK"),
    (0x29, "01", 1, "CONNACK"),
    (0x2A, "01", 1, "CONNACK"),
]

CARRIERS = sorted(set(PacketType) - {PacketType.PINGREQ, PacketType.PINGRESP})
NAMES = {name: PacketType[name] for name in PacketType.__members__}


def refusal_of(content: bytes, packet: PacketType) -> MqttError:
    with pytest.raises(MqttError) as refusal:
        decode_properties(bytes((len(content),)) + content, 0, len(content) + 1, packet)
    return refusal.value


def test_the_table_is_complete() -> None:
    assert [identifier for identifier, *_ in TABLE] == list(PropertyId) == list(DEFINITIONS)
    for key, definition in DEFINITIONS.items():
        assert definition.name.upper().replace(" ", "_") == PropertyId(key).name


@pytest.mark.parametrize(("identifier", "octets", "value", "packets"), TABLE)
def test_a_property_is_decoded_in_its_packets_and_malformed_in_others(
    identifier: int, octets: str, value: object, packets: str
) -> None:
    content = bytes((identifier,)) + bytes.fromhex(octets)
    carriers = {NAMES[name] for name in packets.split()}
    for packet in CARRIERS:
        if packet in carriers:
            assert read_block(content, 0, len(content), packet) == {PropertyId(identifier): value}
        else:
            assert refusal_of(content, packet).reason is ReasonCode.MALFORMED_PACKET
    assert write_block({PropertyId(identifier): value}) == content


@pytest.mark.parametrize(("identifier", "octets", "value", "packets"), TABLE)
def test_only_two_properties_may_be_repeated(identifier: int, octets: str, value: Any, packets: str) -> None:
    content = (bytes((identifier,)) + bytes.fromhex(octets)) * 2
    for packet in (NAMES[name] for name in packets.split()):
        if identifier == PropertyId.USER_PROPERTY or (identifier == 0x0B and packet is PacketType.PUBLISH):
            assert read_block(content, 0, len(content), packet) == {PropertyId(identifier): value * 2}
        else:
            assert refusal_of(content, packet).reason is ReasonCode.PROTOCOL_ERROR


@pytest.mark.parametrize(
    ("content", "packet", "reason"),
    [
        pytest.param("0102", PacketType.PUBLISH, ReasonCode.PROTOCOL_ERROR, id="payload format 2"),
        pytest.param("0b00", PacketType.SUBSCRIBE, ReasonCode.PROTOCOL_ERROR, id="subscription identifier 0"),
        pytest.param("1702", PacketType.CONNECT, ReasonCode.PROTOCOL_ERROR, id="request problem information 2"),
        pytest.param("1902", PacketType.CONNECT, ReasonCode.PROTOCOL_ERROR, id="request response information 2"),
        pytest.param("210000", PacketType.CONNECT, ReasonCode.PROTOCOL_ERROR, id="receive maximum 0"),
        pytest.param("230000", PacketType.PUBLISH, ReasonCode.TOPIC_ALIAS_INVALID, id="MQTT-3.3.2-8: topic alias 0"),
        pytest.param("2700000000", PacketType.CONNECT, ReasonCode.PROTOCOL_ERROR, id="maximum packet size 0"),
        pytest.param("00", PacketType.CONNECT, ReasonCode.MALFORMED_PACKET, id="identifier 0"),
        pytest.param("7f", PacketType.CONNECT, ReasonCode.MALFORMED_PACKET, id="identifier 0x7f"),
        pytest.param("8101", PacketType.PUBLISH, ReasonCode.MALFORMED_PACKET, id="identifier 1 in two bytes"),
        pytest.param("0b8000", PacketType.SUBSCRIBE, ReasonCode.MALFORMED_PACKET, id="MQTT-1.5.5-1: too many bytes"),
        pytest.param("0bffffffff01", PacketType.SUBSCRIBE, ReasonCode.MALFORMED_PACKET, id="five bytes"),
        pytest.param("0300", PacketType.PUBLISH, ReasonCode.MALFORMED_PACKET, id="cut in a length"),
        pytest.param("03000261", PacketType.PUBLISH, ReasonCode.MALFORMED_PACKET, id="cut in text"),
        pytest.param("03000100", PacketType.PUBLISH, ReasonCode.MALFORMED_PACKET, id="U+0000"),
        pytest.param("26000161", PacketType.PUBLISH, ReasonCode.MALFORMED_PACKET, id="half a pair"),
        pytest.param("26000161 0001ff", PacketType.PUBLISH, ReasonCode.MALFORMED_PACKET, id="a pair that is not UTF-8"),
        pytest.param("02000000", PacketType.PUBLISH, ReasonCode.MALFORMED_PACKET, id="cut in a number"),
    ],
)
def test_a_forbidden_property_or_value_has_its_reason_code(
    content: str, packet: PacketType, reason: ReasonCode
) -> None:
    assert refusal_of(bytes.fromhex(content), packet).reason is reason


@pytest.mark.parametrize("data", ["", "01", "0401", "8000", "80808080"])
def test_a_length_beyond_the_packet_is_malformed(data: str) -> None:
    octets = bytes.fromhex(data)
    with pytest.raises(MqttError) as refusal:
        decode_properties(octets, 0, len(octets), PacketType.CONNECT)
    assert refusal.value.reason is ReasonCode.MALFORMED_PACKET


def test_properties_end_at_their_length() -> None:
    assert decode_properties(b"..\x02\x01\x01rest", 2, 9, PacketType.PUBLISH) == (
        {PropertyId.PAYLOAD_FORMAT_INDICATOR: 1},
        5,
    )
    assert decode_properties(b"\x00rest", 0, 5, PacketType.PUBLISH) == ({}, 1)


def test_user_properties_keep_their_order_and_duplicates() -> None:
    pairs = [("b", "1"), ("a", "2"), ("b", "3"), ("b", "1")]
    block = write_block({PropertyId.USER_PROPERTY: pairs})
    assert read_block(block, 0, len(block), PacketType.PUBLISH) == {PropertyId.USER_PROPERTY: pairs}


def test_no_properties_are_encoded_as_one_zero_byte() -> None:
    assert encode_properties(None) == encode_properties({}) == b"\0"


_VALUES: dict[PropertyId, st.SearchStrategy[Any]] = {
    PropertyId.PAYLOAD_FORMAT_INDICATOR: st.integers(0, 1),
    PropertyId.MESSAGE_EXPIRY_INTERVAL: st.integers(0, 2**32 - 1),
    PropertyId.CONTENT_TYPE: mqtt_text,
    PropertyId.RESPONSE_TOPIC: mqtt_text,
    PropertyId.CORRELATION_DATA: st.binary(max_size=200),
    PropertyId.SUBSCRIPTION_IDENTIFIER: st.lists(st.integers(1, LARGEST_VARINT), min_size=1, max_size=3),
    PropertyId.TOPIC_ALIAS: st.integers(1, 65_535),
    PropertyId.USER_PROPERTY: st.lists(st.tuples(mqtt_text, mqtt_text), min_size=1, max_size=4),
}
publish_properties = st.fixed_dictionaries({}, optional=_VALUES)


@given(publish_properties, st.binary(max_size=5))
def test_encoded_properties_are_decoded_to_the_same_values(given: Properties, after: bytes) -> None:
    data = encode_properties(given) + after
    assert decode_properties(data, 0, len(data), PacketType.PUBLISH) == (given, len(data) - len(after))


@given(publish_properties, st.data())
def test_cut_properties_are_malformed(given: Properties, data: st.DataObject) -> None:
    encoded = encode_properties(given)
    end = data.draw(st.integers(0, len(encoded) - 1))
    with pytest.raises(MqttError) as refusal:
        decode_properties(encoded, 0, end, PacketType.PUBLISH)
    assert refusal.value.reason is ReasonCode.MALFORMED_PACKET


def near(number: int) -> st.SearchStrategy[bytes]:
    return st.binary(max_size=6).map(lambda rest: bytes((number,)) + rest)


@given(st.binary(max_size=40) | st.lists(st.sampled_from(list(PropertyId)).flatmap(near)).map(b"".join))
def test_arbitrary_bytes_are_properties_or_an_mqtt_error(content: bytes) -> None:
    for packet in CARRIERS:
        outcome = tried(partial(read_block, content, 0, len(content), packet))
        if isinstance(outcome, MqttError):
            assert outcome.reason in (
                ReasonCode.MALFORMED_PACKET,
                ReasonCode.PROTOCOL_ERROR,
                ReasonCode.TOPIC_ALIAS_INVALID,
            )
        else:
            again = write_block(outcome)
            assert read_block(again, 0, len(again), packet) == outcome
