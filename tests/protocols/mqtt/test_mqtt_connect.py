"""Decoding of CONNECT in three versions: valid and invalid packets (MQTT 5.0 and 3.1.1, 3.1)."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway_mqtt.codec.decoding import connect_version, decode_connect
from gateway_mqtt.codec.errors import MqttError
from gateway_mqtt.codec.packets import Connect, WillPacket
from gateway_mqtt.codec.properties import PropertyId
from gateway_mqtt.codec.reasons import ReasonCode
from tests.protocols.mqtt.client_packets import block, connect, mqtt_text, text, tried, user_property

USERNAME, PASSWORD, WILL_RETAIN, WILL_QOS_2, WILL_QOS_1, WILL, CLEAN = 0x80, 0x40, 0x20, 0x10, 0x08, 0x04, 0x02


def refusal_of(body: bytes, flags: int = 0) -> MqttError:
    with pytest.raises(MqttError) as refusal:
        decode_connect(body, flags)
    return refusal.value


def test_the_example_of_the_specification() -> None:
    """Figure 3-6: user name, password and will, clean start, and a session that outlives its connection by 10 s."""
    body = bytes.fromhex("00044d515454 05 ce 000a 05 110000000a") + text("id")
    body += block() + text("will") + text("gone") + text("user") + text("secret")
    assert decode_connect(body) == Connect(
        version=5,
        protocol_name="MQTT",
        clean_start=True,
        keep_alive_s=10,
        client_id="id",
        username="user",
        password=b"secret",
        will=WillPacket("will", b"gone", 1, False, {}),
        properties={PropertyId.SESSION_EXPIRY_INTERVAL: 10},
    )


@pytest.mark.parametrize(("name", "level"), [("MQIsdp", 3), ("MQTT", 4), ("MQTT", 5)])
def test_three_versions_are_supported(name: str, level: int) -> None:
    read = decode_connect(connect(name=name, level=level))
    assert (read.version, read.protocol_name, read.client_id, read.clean_start) == (level, name, "client", True)
    assert (read.username, read.password, read.will, read.properties) == (None, None, None, {})


@pytest.mark.parametrize(
    ("name", "level"),
    [("MQTT", 3), ("MQTT", 6), ("MQTT", 0), ("MQIsdp", 4), ("MQIsdp", 5), ("mqtt", 4), ("", 5), ("MQTT ", 5), ("X", 4)],
)
def test_other_protocol_names_and_levels_are_refused(name: str, level: int) -> None:
    assert refusal_of(connect(name=name, level=level)).reason is ReasonCode.UNSUPPORTED_PROTOCOL_VERSION  # MQTT-3.1.2-1


@pytest.mark.parametrize(
    ("body", "version"),
    [
        (connect(level=5), 5),
        (connect(level=4), 4),
        (connect(level=3, name="MQIsdp"), 3),
        (connect(level=6), 5),
        (connect(level=0), 3),
        (connect(level=0x84), 4),
        (connect(level=0x83, name="MQIsdp"), 3),
        (b"", 4),
        (b"\0\x04MQT", 4),
        (b"\0\x04MQTT", 4),
        (b"\0\1\xff\5", 4),
    ],
)
def test_a_refusal_uses_a_version_that_the_client_understands(body: bytes, version: int) -> None:
    assert connect_version(body) == version


@pytest.mark.parametrize("level", [3, 4, 5])
@pytest.mark.parametrize("retain", [False, True])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_will_in_every_version(level: int, retain: bool, qos: int) -> None:
    name = "MQIsdp" if level == 3 else "MQTT"
    flags = WILL | CLEAN | qos << 3 | (WILL_RETAIN if retain else 0)
    properties = block(b"\x18\0\0\0\5", b"\1\1", user_property("k", "v")) if level == 5 else b""
    body = connect(name=name, level=level, flags=flags, payload=text("c") + properties + text("t/u") + text(b"\0\xff"))
    will_properties = {}
    if level == 5:
        will_properties = {
            PropertyId.WILL_DELAY_INTERVAL: 5,
            PropertyId.PAYLOAD_FORMAT_INDICATOR: 1,
            PropertyId.USER_PROPERTY: [("k", "v")],
        }
    assert decode_connect(body).will == WillPacket("t/u", b"\0\xff", qos, retain, will_properties)


@pytest.mark.parametrize("topic", ["a/+", "#", ""])
def test_a_will_needs_a_valid_topic_name(topic: str) -> None:
    body = connect(level=4, flags=WILL | CLEAN, payload=text("c") + text(topic) + text(""))
    assert refusal_of(body).reason is ReasonCode.TOPIC_NAME_INVALID


def test_a_will_with_wildcards_in_its_response_topic_is_refused() -> None:
    payload = text("c") + block(b"\x08" + text("a/#")) + text("t") + text("")
    assert refusal_of(connect(flags=WILL, payload=payload)).reason is ReasonCode.TOPIC_NAME_INVALID


@pytest.mark.parametrize(
    ("level", "flags", "fixed_flags", "text"),
    [
        pytest.param(4, 0x03, 0, "reserved", id="3.1.1 MQTT-3.1.2-3: reserved"),
        pytest.param(5, 0x03, 0, "reserved", id="MQTT-3.1.2-3: reserved"),
        pytest.param(4, 0x0A, 0, "without a Will", id="3.1.1 MQTT-3.1.2-13: will QoS without a will"),
        pytest.param(5, 0x12, 0, "without a Will", id="MQTT-3.1.2-11: will QoS without a will"),
        pytest.param(5, 0x22, 0, "without a Will", id="MQTT-3.1.2-13: will retain without a will"),
        pytest.param(4, 0x1E, 0, "Will QoS is 3", id="3.1.1 MQTT-3.1.2-14: will QoS 3"),
        pytest.param(5, 0x1E, 0, "Will QoS is 3", id="MQTT-3.1.2-12: will QoS 3"),
        pytest.param(4, 0x42, 0, "without a user name", id="3.1.1 MQTT-3.1.2-22: a password without a user name"),
        pytest.param(4, 0x02, 2, "flags 0x2 in CONNECT", id="3.1.1 MQTT-2.2.2-2: fixed header"),
        pytest.param(5, 0x02, 1, "flags 0x1 in CONNECT", id="MQTT-2.1.3-1: fixed header"),
    ],
)
def test_contradictory_flags_are_malformed(level: int, flags: int, fixed_flags: int, text: str) -> None:
    refusal = refusal_of(connect(level=level, flags=flags), fixed_flags)
    assert refusal.reason is ReasonCode.MALFORMED_PACKET
    assert text in str(refusal)


@pytest.mark.parametrize(("flags", "fixed_flags"), [(0x03, 0), (0x3A, 0), (0x02, 0x0A)])
def test_3_1_ignores_contradictory_flags(flags: int, fixed_flags: int) -> None:
    assert decode_connect(connect(name="MQIsdp", level=3, flags=flags), fixed_flags).will is None


def test_5_0_allows_a_password_without_a_user_name() -> None:
    read = decode_connect(connect(flags=PASSWORD, payload=text("c") + text(b"\xfftoken")))
    assert (read.username, read.password) == (None, b"\xfftoken")


@pytest.mark.parametrize(
    ("flags", "payload", "username", "password"),
    [
        (USERNAME | PASSWORD, text("c"), None, None),
        (USERNAME | PASSWORD, text("c") + text("u"), "u", None),
        (USERNAME | PASSWORD, text("c") + text("u") + text("p"), "u", b"p"),
    ],
)
def test_3_1_allows_announced_credentials_to_be_missing(
    flags: int, payload: bytes, username: str | None, password: bytes | None
) -> None:
    read = decode_connect(connect(name="MQIsdp", level=3, flags=flags, payload=payload))
    assert (read.username, read.password) == (username, password)
    for level in (4, 5):
        if password is None:
            assert refusal_of(connect(level=level, flags=flags, payload=payload)).reason is ReasonCode.MALFORMED_PACKET


@pytest.mark.parametrize(
    ("level", "flags", "is_served"),
    [(3, CLEAN, False), (3, 0, False), (4, CLEAN, True), (4, 0, False), (5, CLEAN, True), (5, 0, True)],
)
def test_an_empty_client_identifier_is_accepted_depending_on_the_version(
    level: int, flags: int, is_served: bool
) -> None:
    body = connect(name="MQIsdp" if level == 3 else "MQTT", level=level, flags=flags, payload=text(""))
    if is_served:
        assert decode_connect(body).client_id == ""
    else:
        assert refusal_of(body).reason is ReasonCode.CLIENT_IDENTIFIER_NOT_VALID  # 3.1.1: MQTT-3.1.3-8


def test_long_client_identifiers_are_accepted_also_in_3_1() -> None:
    long = "é" * 200
    assert decode_connect(connect(name="MQIsdp", level=3, payload=text(long))).client_id == long


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        pytest.param(connect(properties=block(b"\x21\0\0")), ReasonCode.PROTOCOL_ERROR, id="receive maximum 0"),
        pytest.param(connect(properties=block(b"\x16\0\1x")), ReasonCode.PROTOCOL_ERROR, id="data without a method"),
        pytest.param(connect(properties=block(b"\x23\0\1")), ReasonCode.MALFORMED_PACKET, id="a property of PUBLISH"),
        pytest.param(connect(properties=b"\x7f"), ReasonCode.MALFORMED_PACKET, id="properties beyond the end"),
        pytest.param(connect() + b"x", ReasonCode.MALFORMED_PACKET, id="trailing bytes"),
        pytest.param(connect(level=4) + b"x", ReasonCode.MALFORMED_PACKET, id="trailing bytes, 3.1.1"),
        pytest.param(connect(payload=text("a\0")), ReasonCode.MALFORMED_PACKET, id="U+0000 in the client identifier"),
        pytest.param(
            connect(flags=USERNAME, payload=text("c") + text(b"\xff")), ReasonCode.MALFORMED_PACKET, id="user name"
        ),
        pytest.param(connect(payload=b""), ReasonCode.MALFORMED_PACKET, id="MQTT-3.1.3-3: no client identifier"),
    ],
)
def test_other_invalid_connect_packets_are_refused(body: bytes, reason: ReasonCode) -> None:
    assert refusal_of(body).reason is reason


def test_all_properties_of_a_connect_are_decoded() -> None:
    properties = block(
        b"\x11\xff\xff\xff\xff",
        b"\x21\0\x14",
        b"\x27\0\0\4\0",
        b"\x22\0\x0a",
        b"\x19\1",
        b"\x17\0",
        b"\x15" + text("SCRAM-SHA-256"),
        b"\x16" + text(b"n,,"),
        user_property("a", "1"),
        user_property("a", "2"),
    )
    assert decode_connect(connect(properties=properties)).properties == {
        PropertyId.SESSION_EXPIRY_INTERVAL: 0xFFFFFFFF,
        PropertyId.RECEIVE_MAXIMUM: 20,
        PropertyId.MAXIMUM_PACKET_SIZE: 1024,
        PropertyId.TOPIC_ALIAS_MAXIMUM: 10,
        PropertyId.REQUEST_RESPONSE_INFORMATION: 1,
        PropertyId.REQUEST_PROBLEM_INFORMATION: 0,
        PropertyId.AUTHENTICATION_METHOD: "SCRAM-SHA-256",
        PropertyId.AUTHENTICATION_DATA: b"n,,",
        PropertyId.USER_PROPERTY: [("a", "1"), ("a", "2")],
    }


WHOLE = connect(
    flags=0xF6,
    properties=block(b"\x11\0\0\0\1"),
    payload=text("c") + block(b"\x03" + text("x")) + text("w") + text("p") + text("u") + text("s"),
)


@pytest.mark.parametrize("end", range(len(WHOLE)))
def test_a_cut_connect_is_malformed(end: int) -> None:
    assert refusal_of(WHOLE[:end]).reason is ReasonCode.MALFORMED_PACKET


@given(mqtt_text, mqtt_text, st.binary(max_size=30), st.integers(0, 65_535), st.sampled_from([4, 5]))
def test_an_encoded_connect_is_decoded_to_the_same_values(
    client_id: str, username: str, password: bytes, keep_alive: int, level: int
) -> None:
    payload = text(client_id) + text(username) + text(password)
    read = decode_connect(connect(level=level, flags=0xC2, keep_alive=keep_alive, payload=payload))
    assert (read.client_id, read.username, read.password) == (client_id, username, password)
    assert read.keep_alive_s == keep_alive


plausible = st.builds(
    lambda version, flags, rest: text(version[0]) + struct.pack(">BB", version[1], flags) + rest,
    st.sampled_from([("MQIsdp", 3), ("MQTT", 4), ("MQTT", 5), ("MQTT", 9)]),
    st.integers(0, 255),
    st.binary(max_size=40) | st.binary(max_size=20).map(lambda tail: b"\0\x3c\0\0\1c" + tail),
)


@given(st.binary(max_size=60) | plausible, st.integers(0, 15))
def test_arbitrary_bytes_are_a_connect_or_an_mqtt_error(body: bytes, flags: int) -> None:
    assert connect_version(body) in (3, 4, 5)
    outcome = tried(lambda: decode_connect(body, flags))
    assert isinstance(outcome, Connect) or outcome.reason.is_error


@given(st.integers(0, len(WHOLE) - 1), st.integers(1, 255))
def test_a_flipped_bit_is_handled(place: int, flip: int) -> None:
    damaged = bytearray(WHOLE)
    damaged[place] ^= flip
    outcome = tried(lambda: decode_connect(bytes(damaged)))
    assert isinstance(outcome, Connect) or outcome.reason.is_error
