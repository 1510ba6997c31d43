"""The codec of the simulated MQTT clients, against the broker's own, which shares nothing with it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.simulation.clients.mqtt import writing
from gateway.simulation.clients.mqtt.packets import Login, PacketKind, UnreadablePacket, Will
from gateway.simulation.clients.mqtt.reading import PacketReader
from gateway_mqtt.codec import encoding
from gateway_mqtt.codec.connecting import decode_connect
from gateway_mqtt.codec.decoding import decode_ack, decode_subscribe, decode_unsubscribe
from gateway_mqtt.codec.packet_types import PacketType
from gateway_mqtt.codec.properties import PropertyId, read_block
from gateway_mqtt.codec.publish import decode_publish
from gateway_mqtt.codec.reasons import ReasonCode

VERSIONS = st.sampled_from((4, 5))
IDS = st.integers(1, 65_535)
TOPICS = st.text(st.characters(codec="utf-8", exclude_characters="\0+#"), min_size=1, max_size=40)


def body_of(packet: bytes) -> bytes:
    at = 1
    while packet[at] > 0x7F:
        at += 1
    return packet[at + 1 :]


@given(VERSIONS, TOPICS, st.booleans(), st.integers(0, 65_535), st.integers(0, 2**32 - 1), st.integers(1, 65_535))
def test_the_broker_reads_connect(
    version: int, client_id: str, is_clean: bool, keep_alive_s: int, expiry_s: int, receive_maximum: int
) -> None:
    will = Will("a/b", b"gone", 1, True, 7)
    login = Login(client_id, version, is_clean, keep_alive_s, will, expiry_s, receive_maximum)
    read = decode_connect(body_of(writing.connect(login)))
    assert (read.version, read.client_id, read.clean_start) == (version, client_id, is_clean)
    assert (read.keep_alive_s, read.username, read.password) == (keep_alive_s, "guest", b"guest")
    assert read.will is not None
    assert (read.will.topic, read.will.payload, read.will.qos, read.will.retain) == ("a/b", b"gone", 1, True)
    if version == 5:
        assert read.properties[PropertyId.SESSION_EXPIRY_INTERVAL] == expiry_s
        assert read.properties[PropertyId.RECEIVE_MAXIMUM] == receive_maximum
        assert read.will.properties[PropertyId.WILL_DELAY_INTERVAL] == 7


@given(VERSIONS, TOPICS, st.binary(max_size=300), st.integers(0, 2), IDS)
def test_the_broker_reads_publish(version: int, topic: str, payload: bytes, qos: int, packet_id: int) -> None:
    packet = writing.publish(version, topic, payload, qos=qos, packet_id=packet_id)
    body = body_of(packet)
    read_topic, read_id, _, at = decode_publish(version, packet[0] & 0x0F, body, 0, len(body))
    assert (read_topic.decode(), read_id, body[at:]) == (topic, packet_id if qos else 0, payload)


@given(TOPICS)
def test_a_content_type_is_written_and_read(content_type: str) -> None:
    packet = writing.publish(5, "a/b", b"x", content_type=content_type)
    (read,) = PacketReader(5).feed(packet)
    assert (read.content_type, read.payload) == (content_type, b"x")
    body = body_of(packet)
    _, _, at, end = decode_publish(5, packet[0] & 0x0F, body, 0, len(body))
    assert read_block(body, at, end, PacketType.PUBLISH) == {PropertyId.CONTENT_TYPE: content_type}


@given(VERSIONS, IDS, st.lists(st.tuples(TOPICS, st.integers(0, 2)), min_size=1, max_size=5))
def test_the_broker_reads_subscribe_and_unsubscribe(
    version: int, packet_id: int, filters: list[tuple[str, int]]
) -> None:
    packet = writing.subscribe(version, packet_id, filters)
    read = decode_subscribe(version, packet[0] & 0x0F, body_of(packet))
    assert [(each.filter, each.qos) for each in read.filters] == filters
    packet = writing.unsubscribe(version, packet_id, [each for each, _ in filters])
    left = decode_unsubscribe(version, packet[0] & 0x0F, body_of(packet))
    assert (left.packet_id, list(left.filters)) == (packet_id, [each for each, _ in filters])


@given(VERSIONS, IDS, st.sampled_from((PacketKind.PUBACK, PacketKind.PUBREC, PacketKind.PUBREL, PacketKind.PUBCOMP)))
def test_acknowledgements_are_read_by_both_sides(version: int, packet_id: int, kind: PacketKind) -> None:
    assert decode_ack(version, kind, body_of(writing.acknowledge(kind, packet_id)))[0] == packet_id
    reason = ReasonCode.PACKET_IDENTIFIER_NOT_FOUND if kind > PacketKind.PUBREC else ReasonCode.QUOTA_EXCEEDED
    (packet,) = PacketReader(version).feed(encoding.ack(kind, version, packet_id, reason))
    assert (packet.kind, packet.packet_id) == (kind, packet_id)
    assert packet.reason == (reason if version == 5 else 0)


@given(VERSIONS, st.booleans(), st.integers(1, 30))
def test_the_client_reads_bytes_cut_anywhere(version: int, is_present: bool, size: int) -> None:
    properties = {PropertyId.RECEIVE_MAXIMUM: 9, PropertyId.REASON_STRING: "why", PropertyId.TOPIC_ALIAS_MAXIMUM: 3}
    data = encoding.connack(version, is_present, ReasonCode.SUCCESS, properties)
    data += encoding.suback(version, 7, [ReasonCode.GRANTED_QOS_1, ReasonCode.UNSPECIFIED_ERROR])
    data += encoding.PINGRESP
    reader = PacketReader(version)
    packets = [packet for at in range(0, len(data), size) for packet in reader.feed(data[at : at + size])]
    connack, suback, pingresp = packets
    assert connack.is_session_present is is_present
    assert (suback.packet_id, suback.reasons) == (7, (1, 0x80))
    assert pingresp.kind is PacketKind.PINGRESP
    if version == 5:
        assert dict(connack.properties) == {0x21: 9, 0x1F: "why", 0x22: 3}


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"\x36\x05\x00\x01a\x00\x01", id="PUBLISH of QoS 3"),
        pytest.param(b"\x32\x05\x00\x01a\x00\x00", id="PUBLISH with identifier 0"),
        pytest.param(b"\x38\x03\x00\x01a", id="PUBLISH of QoS 0 with DUP"),
        pytest.param(b"\x30\x03\x00\x01#", id="PUBLISH to a filter"),
        pytest.param(b"\x60\x02\x00\x01", id="PUBREL without its flags"),
        pytest.param(b"\x10\x00", id="CONNECT from a broker"),
        pytest.param(b"\x20\x01\x00", id="CONNACK that ends early"),
        pytest.param(b"\x20\x03\x00\x00\x00", id="CONNACK with one byte too many"),
        pytest.param(b"\x20\xff\xff\xff\xff\x01", id="a length of five bytes"),
    ],
)
def test_what_no_broker_may_send_is_not_read(data: bytes) -> None:
    with pytest.raises(UnreadablePacket):
        list(PacketReader(4).feed(data))
