"""The data types of packets: encoding, decoding, and refusal of malformed values (MQTT 5.0, 1.5)."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway_mqtt.codec.data_types import (
    LARGEST_VARINT,
    LONGEST_STRING,
    binary,
    read_binary,
    read_bounded_varint,
    read_octet,
    read_u16,
    read_u32,
    read_utf8,
    read_varint,
    require_minimal,
    u16,
    u32,
    utf8,
    varint,
)
from gateway_mqtt.codec.errors import MqttError
from gateway_mqtt.codec.reasons import ReasonCode
from tests.protocols.mqtt.client_packets import mqtt_text, tried

#: Table 1-1: the first and the last number of each size.
SIZES = [
    (0, "00"),
    (127, "7f"),
    (128, "8001"),
    (16_383, "ff7f"),
    (16_384, "808001"),
    (2_097_151, "ffff7f"),
    (2_097_152, "80808001"),
    (268_435_455, "ffffff7f"),
]


@pytest.mark.parametrize(("number", "octets"), SIZES)
def test_variable_byte_integers_match_the_table(number: int, octets: str) -> None:
    assert varint(number).hex() == octets
    assert read_varint(bytes.fromhex(octets), 0) == (number, len(octets) // 2)


@given(st.integers(0, LARGEST_VARINT), st.binary(max_size=3), st.binary(max_size=3))
def test_a_variable_byte_integer_is_decoded_at_any_position(number: int, before: bytes, after: bytes) -> None:
    data = before + varint(number) + after
    assert read_varint(data, len(before)) == (number, len(data) - len(after))


@given(st.integers(0, LARGEST_VARINT), st.data())
def test_an_incomplete_variable_byte_integer_returns_none(number: int, data: st.DataObject) -> None:
    encoded = varint(number)
    assert read_varint(encoded[: data.draw(st.integers(0, len(encoded) - 1))], 0) is None


@pytest.mark.parametrize("octets", ["80808080", "8080808001", "ffffffff7f"])
def test_a_fifth_byte_is_malformed_before_it_has_arrived(octets: str) -> None:
    with pytest.raises(MqttError, match="more than four bytes") as refusal:
        read_varint(bytes.fromhex(octets), 0)
    assert refusal.value.reason is ReasonCode.MALFORMED_PACKET


def test_a_number_of_more_than_four_bytes_is_not_encoded() -> None:
    with pytest.raises(ValueError, match="268435456"):
        varint(LARGEST_VARINT + 1)


@pytest.mark.parametrize("octets", ["8000", "ff00", "808000", "80808000"])
def test_5_0_requires_the_shortest_encoding(octets: str) -> None:
    data = bytes.fromhex(octets)
    read = read_varint(data, 0)
    assert read is not None
    with pytest.raises(MqttError, match=f"{read[0]} encoded in {len(data)} bytes"):
        require_minimal(read[0], len(data))
    with pytest.raises(MqttError, match="encoded in"):
        read_bounded_varint(data, 0, len(data))


@given(st.integers(0, LARGEST_VARINT))
def test_the_encoding_is_the_shortest(number: int) -> None:
    encoded = varint(number)
    require_minimal(number, len(encoded))
    assert read_bounded_varint(encoded, 0, len(encoded)) == (number, len(encoded))


def test_a_variable_byte_integer_beyond_its_packet_is_malformed() -> None:
    with pytest.raises(MqttError, match="cut short"):
        read_bounded_varint(b"\x80\x01", 0, 1)


@given(mqtt_text, st.binary(max_size=4))
def test_encoded_strings_are_decoded_to_the_same_text(content: str, after: bytes) -> None:
    data = utf8(content) + after
    assert read_utf8(data, 0, len(data)) == (content, len(data) - len(after))


@given(st.binary(max_size=60))
def test_encoded_binary_data_is_decoded_to_the_same_bytes(content: bytes) -> None:
    data = b"?" + binary(content)
    assert read_binary(data, 1, len(data)) == (content, len(data))


def test_the_longest_string_is_accepted_and_a_longer_one_is_not() -> None:
    assert len(utf8("x" * LONGEST_STRING)) == LONGEST_STRING + 2
    with pytest.raises(ValueError, match="65536 bytes"):
        utf8("x" * (LONGEST_STRING + 1))


@pytest.mark.parametrize(
    "octets",
    [
        pytest.param(b"a\0b", id="MQTT-1.5.4-2: U+0000"),
        pytest.param(b"\xed\xa0\x80", id="MQTT-1.5.4-1: U+D800"),
        pytest.param(b"\xed\xbf\xbf", id="MQTT-1.5.4-1: U+DFFF"),
        pytest.param(b"\xed\xa0\x81\xed\xb0\x80", id="MQTT-1.5.4-1: a pair of surrogates"),
        pytest.param(b"\xc0\x80", id="U+0000 in two bytes"),
        pytest.param(b"\xc1\xbf", id="overlong"),
        pytest.param(b"\xf4\x90\x80\x80", id="beyond U+10FFFF"),
        pytest.param(b"\xff", id="an invalid first byte"),
        pytest.param(b"\xe2\x82", id="a character cut short"),
    ],
)
def test_ill_formed_text_is_malformed(octets: bytes) -> None:
    with pytest.raises(MqttError) as refusal:
        read_utf8(binary(octets), 0, len(octets) + 2)
    assert refusal.value.reason is ReasonCode.MALFORMED_PACKET


@pytest.mark.parametrize("content", ["\ufeff", "\ufeffa", "a\ufeff"])
def test_a_byte_order_mark_is_kept(content: str) -> None:
    octets = utf8(content)
    assert b"\xef\xbb\xbf" in octets  # MQTT-1.5.4-3
    assert read_utf8(octets, 0, len(octets))[0] == content


@pytest.mark.parametrize("content", ["a\0", "\ud800"])
def test_text_that_mqtt_cannot_carry_is_not_encoded(content: str) -> None:
    with pytest.raises(ValueError, match=r"U\+0000|surrogates"):
        utf8(content)


READERS: list[tuple[Callable[[bytes, int, int], tuple[int, int]], bytes, int]] = [
    (read_octet, b"\x07", 7),
    (read_u16, u16(0x1234), 0x1234),
    (read_u32, u32(0x12345678), 0x12345678),
]


@pytest.mark.parametrize(("read", "encoded", "value"), READERS)
def test_fixed_integers_are_decoded_and_missing_bytes_are_malformed(
    read: Callable[[bytes, int, int], tuple[int, int]], encoded: bytes, value: int
) -> None:
    assert read(b"." + encoded + b".", 1, 1 + len(encoded)) == (value, 1 + len(encoded))
    for end in range(1, 1 + len(encoded)):
        with pytest.raises(MqttError, match=r"missing|cut short"):
            read(b"." + encoded + b".", 1, end)


EVERY_READER: list[Callable[[bytes, int, int], tuple[Any, int]]] = [
    read_bounded_varint,
    read_octet,
    read_u16,
    read_u32,
    read_binary,
    read_utf8,
]


@given(st.binary(max_size=20), st.integers(0, 20), st.integers(0, 20))
def test_arbitrary_bytes_are_decoded_or_malformed(data: bytes, at: int, end: int) -> None:
    end = min(end, len(data))
    for read in EVERY_READER:
        outcome = tried(partial(read, data, at, end))
        if isinstance(outcome, MqttError):
            assert outcome.reason is ReasonCode.MALFORMED_PACKET
        else:
            assert at < outcome[1] <= end
