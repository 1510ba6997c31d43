"""Encoding of the server's packets, byte by byte, in each version (MQTT 5.0, 3.2 to 3.15; 3.1.1)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway_mqtt.codec.data_types import read_varint
from gateway_mqtt.codec.encoding import PINGRESP, ack, auth, connack, disconnect, packet, suback, unsuback
from gateway_mqtt.codec.packet_types import PacketType
from gateway_mqtt.codec.properties import Properties, PropertyId, decode_properties
from gateway_mqtt.codec.reasons import ReasonCode

SAID: Properties = {PropertyId.REASON_STRING: "why"}
SAID_BYTES = "061f0003776879"


@pytest.mark.parametrize(
    ("written", "octets"),
    [
        pytest.param(connack(3, True, ReasonCode.SUCCESS), "20020000", id="3.1 has no session present flag"),
        pytest.param(connack(4, True, ReasonCode.SUCCESS), "20020100", id="3.1.1 with a session"),
        pytest.param(connack(4, False, ReasonCode.SUCCESS), "20020000", id="3.1.1 without a session"),
        pytest.param(connack(4, True, ReasonCode.NOT_AUTHORIZED), "20020005", id="3.1.1: MQTT-3.2.2-4"),
        pytest.param(connack(3, False, ReasonCode.UNSUPPORTED_PROTOCOL_VERSION), "20020001", id="3.1: wrong version"),
        pytest.param(connack(4, False, ReasonCode.BAD_USER_NAME_OR_PASSWORD), "20020004", id="3.1.1: bad password"),
        pytest.param(connack(4, False, ReasonCode.MALFORMED_PACKET), "", id="3.1.1: MQTT-3.2.2-6"),
        pytest.param(connack(5, True, ReasonCode.SUCCESS), "2003010000", id="5.0 with a session"),
        pytest.param(connack(5, True, ReasonCode.NOT_AUTHORIZED), "2003008700", id="MQTT-3.2.2-6"),
        pytest.param(connack(5, False, ReasonCode.SUCCESS, SAID), "20090000" + SAID_BYTES, id="5.0 with properties"),
        pytest.param(connack(4, False, ReasonCode.SUCCESS, SAID), "20020000", id="3.1.1 has no properties"),
        pytest.param(ack(PacketType.PUBACK, 4, 1), "40020001", id="PUBACK"),
        pytest.param(ack(PacketType.PUBREC, 4, 0xABCD), "5002abcd", id="PUBREC"),
        pytest.param(ack(PacketType.PUBREL, 4, 1), "62020001", id="MQTT-3.6.1-1: PUBREL"),
        pytest.param(ack(PacketType.PUBCOMP, 3, 1), "70020001", id="PUBCOMP"),
        pytest.param(ack(PacketType.PUBACK, 5, 1), "40020001", id="5.0 success is short"),
        pytest.param(ack(PacketType.PUBACK, 5, 1, ReasonCode.NO_MATCHING_SUBSCRIBERS), "4003000110", id="5.0 reason"),
        pytest.param(
            ack(PacketType.PUBREL, 5, 1, ReasonCode.PACKET_IDENTIFIER_NOT_FOUND), "6203000192", id="5.0 PUBREL"
        ),
        pytest.param(
            ack(PacketType.PUBACK, 5, 1, ReasonCode.SUCCESS, SAID), "400a000100" + SAID_BYTES, id="5.0 properties"
        ),
        pytest.param(ack(PacketType.PUBACK, 5, 1, ReasonCode.SUCCESS, {}), "40020001", id="5.0 no properties"),
        pytest.param(
            ack(PacketType.PUBACK, 4, 1, ReasonCode.QUOTA_EXCEEDED, SAID), "40020001", id="3.1.1 has no reason"
        ),
        pytest.param(suback(4, 1, [ReasonCode.SUCCESS, ReasonCode.GRANTED_QOS_2]), "900400010002", id="3.1.1 SUBACK"),
        pytest.param(suback(4, 1, [ReasonCode.NOT_AUTHORIZED]), "9003000180", id="3.1.1 SUBACK failure"),
        pytest.param(suback(5, 1, [ReasonCode.NOT_AUTHORIZED]), "900400010087", id="5.0 SUBACK"),
        pytest.param(
            suback(5, 1, [ReasonCode.GRANTED_QOS_1], SAID),
            "900a0001" + SAID_BYTES + "01",
            id="5.0 SUBACK with a reason string",
        ),
        pytest.param(unsuback(4, 1, [ReasonCode.SUCCESS]), "b0020001", id="3.1.1 UNSUBACK"),
        pytest.param(
            unsuback(5, 1, [ReasonCode.SUCCESS, ReasonCode.NO_SUBSCRIPTION_EXISTED]),
            "b0050001000011",
            id="5.0 UNSUBACK",
        ),
        pytest.param(disconnect(4, ReasonCode.SERVER_BUSY), "", id="3.1.1 has no DISCONNECT from servers"),
        pytest.param(disconnect(5, ReasonCode.SUCCESS), "e000", id="5.0 DISCONNECT"),
        pytest.param(disconnect(5, ReasonCode.SESSION_TAKEN_OVER), "e0018e", id="5.0 DISCONNECT with a reason"),
        pytest.param(
            disconnect(5, ReasonCode.SUCCESS, SAID), "e00800" + SAID_BYTES, id="5.0 DISCONNECT with properties"
        ),
        pytest.param(auth(ReasonCode.SUCCESS), "f000", id="AUTH"),
        pytest.param(
            auth(ReasonCode.CONTINUE_AUTHENTICATION, {PropertyId.AUTHENTICATION_METHOD: "X"}),
            "f0061804 15000158",
            id="AUTH continue",
        ),
        pytest.param(PINGRESP, "d000", id="PINGRESP"),
    ],
)
def test_encoded_packets_match_the_specification(written: bytes, octets: str) -> None:
    assert written == bytes.fromhex(octets)


@given(st.integers(0, 300))
def test_the_remaining_length_counts_the_body(size: int) -> None:
    written = packet(0x90, bytes(size))
    length = read_varint(written, 1)
    assert length == (size, len(written) - size)


@given(
    st.sampled_from(sorted(ReasonCode)), st.booleans(), st.text(st.characters(codec="utf-8", exclude_characters="\0"))
)
def test_a_connack_contains_what_was_passed(reason: ReasonCode, is_present: bool, why: str) -> None:
    properties: Properties = {PropertyId.REASON_STRING: why, PropertyId.MAXIMUM_PACKET_SIZE: 1000}
    written = connack(5, is_present, reason, properties)
    length = read_varint(written, 1)
    assert length is not None
    size, at = length
    assert len(written) == at + size
    assert written[at : at + 2] == bytes((is_present and not reason.is_error, reason))
    assert decode_properties(written, at + 2, len(written), PacketType.CONNACK) == (properties, len(written))
