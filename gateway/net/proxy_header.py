"""The PROXY protocol header, versions 1 and 2, in which a proxy names the client's addresses: parsed, and written.

The clauses are those of https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt. Twisted's parser is not used: it
needs the first sixteen bytes in one read, and raises ``ValueError`` for a wrong port.
"""

from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv6Address, ip_address
from typing import Final

from gateway.kernel.errors import ProtocolViolation

_V1: Final = b"PROXY "
_V1_MAX: Final = 107  # the longest possible line, CRLF included (2.1)
_V2: Final = b"\r\n\r\n\0\r\nQUIT\n"
_V2_HEAD: Final = 16

#: Bytes that a version 2 header may announce: addresses and extensions (2.2).
_V2_MAX: Final = 4096

_LOCAL, _PROXY = 0x20, 0x21
_TCP_OVER: Final[dict[int, tuple[type[IPv4Address] | type[IPv6Address], int]]] = {
    0x11: (IPv4Address, 4),
    0x21: (IPv6Address, 16),
}
_LINE_OVER: Final[dict[bytes, type[IPv4Address] | type[IPv6Address]]] = {b"TCP4": IPv4Address, b"TCP6": IPv6Address}


@dataclass(frozen=True, slots=True)
class Proxied:
    """The addresses in the header, each as (host, port); ``None`` when the connection is the proxy's own.

    ``size`` is the length of the header in bytes.
    """

    source: tuple[str, int] | None
    destination: tuple[str, int] | None
    size: int


def parse(data: bytes) -> Proxied | None:
    """Parse the header at the start of ``data``; return ``None`` while it is incomplete.

    :raises ProtocolViolation: when the header is missing or malformed.
    """
    if data[:12] == _V2[: len(data)]:
        return _parse_binary(data)
    if data[:6] == _V1[: len(data)]:
        return _parse_line(data)
    raise ProtocolViolation("no PROXY header at the start of the connection")


def encode(source: tuple[str, int], destination: tuple[str, int]) -> bytes:
    """Return the header of version 2 with these addresses; both as IPv6 if one of them is (2.2)."""
    hosts = [ip_address(host.partition("%")[0]) for host, _ in (source, destination)]
    if any(host.version == 6 for host in hosts):
        hosts = [host if isinstance(host, IPv6Address) else IPv6Address(f"::ffff:{host}") for host in hosts]
    family = 0x21 if hosts[0].version == 6 else 0x11
    addresses = b"".join(host.packed for host in hosts)
    ports = source[1].to_bytes(2, "big") + destination[1].to_bytes(2, "big")
    size = len(addresses) + len(ports)
    return _V2 + bytes((_PROXY, family)) + size.to_bytes(2, "big") + addresses + ports


def _parse_line(data: bytes) -> Proxied | None:
    """Parse version 1: a line of words (2.1)."""
    end = data.find(b"\r\n", 0, _V1_MAX)
    if end < 0:
        if len(data) >= _V1_MAX:
            raise ProtocolViolation("a PROXY line without CRLF")
        return None
    words, size = data[:end].split(b" "), end + 2
    if words[1] == b"UNKNOWN":
        return Proxied(None, None, size)
    try:
        _, family, source, destination, source_port, destination_port = words
        kind = _LINE_OVER[family]
        return Proxied(
            (str(kind(source.decode("ascii"))), _port(source_port)),
            (str(kind(destination.decode("ascii"))), _port(destination_port)),
            size,
        )
    except (KeyError, ValueError, AddressValueError):
        raise ProtocolViolation(f"malformed PROXY line: {data[:end]!r}") from None


def _port(text: bytes) -> int:
    """Parse a port: decimal, without leading zeros. :raises ValueError: for anything else."""
    port = int(text)
    if str(port).encode() != text or not 0 <= port <= 65535:
        raise ValueError(text)
    return port


def _parse_binary(data: bytes) -> Proxied | None:
    """Parse version 2: a head, addresses, and extensions, which are ignored (2.2)."""
    if len(data) < _V2_HEAD:
        return None
    command, family, size = data[12], data[13], int.from_bytes(data[14:16], "big")
    if command not in (_LOCAL, _PROXY) or size > _V2_MAX:
        raise ProtocolViolation(f"malformed PROXY header: {data[:_V2_HEAD].hex()}")
    end = _V2_HEAD + size
    if len(data) < end:
        return None
    if command == _LOCAL or family not in _TCP_OVER:  # 2.2: for other families the receiver uses the real addresses
        return Proxied(None, None, end)
    kind, width = _TCP_OVER[family]
    if size < 2 * width + 4:
        raise ProtocolViolation("a PROXY header too short for its addresses")
    source, destination = data[16 : 16 + width], data[16 + width : 16 + 2 * width]
    ports = 16 + 2 * width
    return Proxied(
        (str(kind(source)), int.from_bytes(data[ports : ports + 2], "big")),
        (str(kind(destination)), int.from_bytes(data[ports + 2 : ports + 4], "big")),
        end,
    )
