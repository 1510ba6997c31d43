"""Parser of PROXY headers, cut anywhere: addresses, incomplete headers and malformed ones."""

from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.kernel.errors import ProtocolViolation
from gateway.net.proxy_header import Proxied, parse

V2 = b"\r\n\r\n\0\r\nQUIT\n"
PAIR_4 = IPv4Address("192.0.2.7").packed + IPv4Address("198.51.100.1").packed + b"\xdc\x04\x16\x28"
PAIR_6 = IPv6Address("2001:db8::7").packed + IPv6Address("2001:db8::1").packed + b"\xdc\x04\x16\x28"


def binary(command: int, family: int, payload: bytes) -> bytes:
    return V2 + bytes((command, family)) + len(payload).to_bytes(2, "big") + payload


CLIENT_4 = (("192.0.2.7", 56324), ("198.51.100.1", 5672))
CLIENT_6 = (("2001:db8::7", 56324), ("2001:db8::1", 5672))
OWN = (None, None)

HEADERS = [
    pytest.param(b"PROXY TCP4 192.0.2.7 198.51.100.1 56324 5672\r\n", CLIENT_4, id="2.1 TCP4"),
    pytest.param(b"PROXY TCP6 2001:db8::7 2001:db8::1 56324 5672\r\n", CLIENT_6, id="2.1 TCP6"),
    pytest.param(b"PROXY UNKNOWN\r\n", OWN, id="2.1 UNKNOWN"),
    pytest.param(b"PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n", OWN, id="2.1 UNKNOWN with addresses"),
    pytest.param(binary(0x21, 0x11, PAIR_4), CLIENT_4, id="2.2 TCP over IPv4"),
    pytest.param(binary(0x21, 0x21, PAIR_6), CLIENT_6, id="2.2 TCP over IPv6"),
    pytest.param(binary(0x21, 0x11, PAIR_4 + b"\x02\x00\x03abc"), CLIENT_4, id="2.2 more than addresses"),
    pytest.param(binary(0x20, 0x11, PAIR_4), OWN, id="2.2 LOCAL"),
    pytest.param(binary(0x20, 0x00, b""), OWN, id="2.2 LOCAL without addresses"),
    pytest.param(binary(0x21, 0x31, bytes(216)), OWN, id="2.2 UNIX"),
    pytest.param(binary(0x21, 0x00, b""), OWN, id="2.2 UNSPEC"),
]
Pairs = tuple[tuple[str, int] | None, tuple[str, int] | None]


@pytest.mark.parametrize(("header", "pairs"), HEADERS)
def test_a_header_is_parsed_to_its_addresses_and_its_size(header: bytes, pairs: Pairs) -> None:
    assert parse(header) == Proxied(*pairs, len(header))
    assert parse(header + b"AMQP\0\0\x09\x01") == Proxied(*pairs, len(header))


@pytest.mark.parametrize(("header", "pairs"), HEADERS)
def test_an_incomplete_header_is_parsed_to_none(header: bytes, pairs: Pairs) -> None:
    assert [parse(header[:size]) for size in range(1, len(header))] == [None] * (len(header) - 1)


SENSELESS = [
    pytest.param(b"AMQP\0\0\x09\x01", id="no header"),
    pytest.param(b"\x10\x0c\x00\x04MQTT", id="another protocol, no header"),
    pytest.param(b"\r\n\r\nQ", id="half a signature"),
    pytest.param(b"PROXYTCP4", id="no space"),
    pytest.param(b"PROXY " + b"x" * 200, id="a line without an end"),
    pytest.param(b"PROXY \r\n", id="no family"),
    pytest.param(b"PROXY TCP5 192.0.2.7 198.51.100.1 1 2\r\n", id="an unknown family"),
    pytest.param(b"PROXY TCP4 192.0.2.7 198.51.100.1 1\r\n", id="a port missing"),
    pytest.param(b"PROXY TCP4 192.0.2.7 198.51.100.1 1 2 3\r\n", id="a word too many"),
    pytest.param(b"PROXY TCP4 192.0.2.7  198.51.100.1 1 2\r\n", id="two spaces"),
    pytest.param(b"PROXY TCP4 2001:db8::7 198.51.100.1 1 2\r\n", id="an address of the other family"),
    pytest.param(b"PROXY TCP4 192.0.2.256 198.51.100.1 1 2\r\n", id="not an address"),
    pytest.param(b"PROXY TCP4 192.0.2.7 198.51.100.1 65536 2\r\n", id="a port too high"),
    pytest.param(b"PROXY TCP4 192.0.2.7 198.51.100.1 -1 2\r\n", id="a port below 0"),
    pytest.param(b"PROXY TCP4 192.0.2.7 198.51.100.1 01 2\r\n", id="a leading zero"),
    pytest.param(b"PROXY TCP4 192.0.2.\xff 198.51.100.1 1 2\r\n", id="not ASCII"),
    pytest.param(binary(0x11, 0x11, PAIR_4), id="version 1 in binary"),
    pytest.param(binary(0x22, 0x11, PAIR_4), id="an unknown command"),
    pytest.param(binary(0x21, 0x11, PAIR_4[:-1]), id="too short for IPv4"),
    pytest.param(binary(0x21, 0x21, PAIR_4), id="too short for IPv6"),
    pytest.param(binary(0x21, 0x11, bytes(4097)), id="too long"),
]


@pytest.mark.parametrize("data", SENSELESS)
def test_a_malformed_header_is_a_violation(data: bytes) -> None:
    with pytest.raises(ProtocolViolation):
        parse(data)


@given(st.binary(min_size=1, max_size=300), st.sampled_from([b"", b"PROXY ", b"PROXY TCP4 ", V2, V2 + b"\x21\x11"]))
def test_any_bytes_are_a_header_an_incomplete_header_or_a_violation(data: bytes, start: bytes) -> None:
    try:
        header = parse(start + data)
    except ProtocolViolation:
        return
    assert header is None or 0 < header.size <= len(start + data)
