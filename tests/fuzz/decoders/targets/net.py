"""Decoders of the network: PROXY headers, WebSocket, the first bytes of clients of a broker that starts."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from twisted.internet.protocol import Factory, Protocol
from twisted.internet.testing import StringTransport

from gateway.access import CertificateSubject
from gateway.kernel.broker.connections import TlsInfo
from gateway.kernel.errors import ProtocolViolation
from gateway.net import proxy_header
from gateway.net.forwarding.introduction import encode_introduction, parse_introduction
from gateway.net.forwarding.routing import FIRST_CELL
from gateway.net.forwarding.taking import ForwardedFactory
from gateway.net.introduced import IntroducedClient
from gateway.net.not_ready import NotReadyFactory
from gateway.net.origins import OriginRules, name_of
from gateway.net.proxied import ProxiedFactory
from gateway.net.websocket import MQTT, STOMP, WebSocketFactory
from gateway.testing import FakeClock
from gateway_amqp import not_ready as amqp_not_ready
from gateway_mqtt import not_ready as mqtt_not_ready
from gateway_stomp import not_ready as stomp_not_ready
from tests.fuzz.decoders.corpus import frames_of
from tests.fuzz.decoders.laws import attempt, cuttings, refused, require, require_any_cut, text_of
from tests.fuzz.decoders.target import Target

_V2: Final = b"\r\n\r\n\0\r\nQUIT\n"

#: The secret of a cluster.
_SECRET: Final = "0123456789abcdef" * 2

#: A client with TLS, a certificate and a web page.
_SECURE: Final = IntroducedClient(
    TlsInfo("tlsv1.3", subject="CN=orders"), CertificateSubject("orders", "CN=orders"), True, "https://example.org"
)


class _Recorder(Protocol):
    """Records what reaches the protocol behind."""

    def __init__(self) -> None:
        self.received = b""

    def dataReceived(self, data: bytes) -> None:
        self.received += data


def _recorder(recorder: _Recorder) -> Factory:
    return Factory.forProtocol(lambda: recorder)  # type: ignore[arg-type]  # a callable is enough


def _proxy(data: bytes) -> None:
    """The header of a proxy is found however the bytes are cut; what follows it is passed on."""

    def outcome(pieces: Sequence[bytes]) -> object:
        client = _Recorder()
        transport: Any = StringTransport()
        transport.protocol = ProxiedFactory(_recorder(client), FakeClock(), 10).buildProtocol(None)
        transport.protocol.makeConnection(transport)
        for piece in pieces:
            if piece and not transport.disconnected:
                transport.protocol.dataReceived(piece)
        addresses = (transport.getPeer(), transport.getHost()) if not transport.disconnected else None
        return addresses, client.received

    require_any_cut(data, outcome)
    header = attempt(ProtocolViolation, proxy_header.parse, data)
    require(refused(header) or header is None or header.size <= len(data), "a header is inside its bytes", header)


def _forwarding(data: bytes) -> None:
    """A connection of another node is taken or refused however its bytes are cut, and needs the secret."""

    def outcome(pieces: Sequence[bytes]) -> object:
        client = _Recorder()
        transport: Any = StringTransport()
        factory = ForwardedFactory(_SECRET, lambda cell: {"amqp": _recorder(client)}, FakeClock())
        transport.protocol = factory.buildProtocol(None)
        transport.protocol.makeConnection(transport)
        for piece in pieces:
            if piece and not transport.disconnected:
                transport.protocol.dataReceived(piece)
        return transport.value(), transport.disconnected, client.received

    require_any_cut(data, outcome)
    taken = attempt(ProtocolViolation, parse_introduction, data, _SECRET)
    lines = tuple(encode_introduction(_SECRET, "amqp", is_resumed=is_resumed) for is_resumed in (False, True))
    is_known = data.startswith(lines)
    is_taken = not refused(taken) and taken is not None and (taken.listener, taken.node) == ("amqp", "")
    is_taken = is_taken and taken.cell == FIRST_CELL
    is_taken = is_taken and b" =" not in data[: data.index(b"\n")]
    require(is_taken is is_known, "the secret is needed", data)


def _websocket(data: bytes) -> None:
    """The handshake and the frames of WebSocket have the same result however they are cut.

    Parts of an incomplete message may have been passed on, so one result may be longer than another.
    """
    dialect = STOMP if data[:1] == b"S" else MQTT

    def outcome(pieces: Sequence[bytes]) -> bytes:
        client, clock = _Recorder(), FakeClock()
        transport: Any = StringTransport()
        server = WebSocketFactory(_recorder(client), dialect, "/ws", clock, 10).buildProtocol(None)
        server.makeConnection(transport)
        for piece in pieces:
            server.dataReceived(piece)
        clock.advance(0)
        return client.received

    whole, *others = (outcome(pieces) for pieces in cuttings(data[1:]))
    for other in others:
        require(whole.startswith(other) or other.startswith(whole), "any cut passes the same bytes on", whole, other)
    OriginRules().refusal(text_of(data[:200]), text_of(data[1:200]), is_local=True)
    name_of(text_of(data))


_REFUSALS: Final = (amqp_not_ready.refusal, mqtt_not_ready.refusal, stomp_not_ready.refusal)


def _not_ready(data: bytes) -> None:
    """A client of a broker that starts gets the same answer however its bytes are cut."""
    refusal = _REFUSALS[data[0] % 3] if data else _REFUSALS[0]

    def outcome(pieces: Sequence[bytes]) -> object:
        transport: Any = StringTransport()
        server = NotReadyFactory(lambda received: refusal(received, "the node starts"), FakeClock()).buildProtocol(None)
        server.makeConnection(transport)
        for piece in pieces:
            if piece:
                server.dataReceived(piece)
        return transport.value()

    require_any_cut(data[1:][:512], outcome)


def _proxy_seeds() -> Iterable[bytes]:
    addresses = bytes((192, 0, 2, 7, 198, 51, 100, 1)) + b"\xdc\x04\x16\x28"
    yield b"PROXY TCP4 192.0.2.7 198.51.100.1 56324 5672\r\nAMQP"
    yield b"PROXY TCP6 2001:db8::1 ::1 56324 5672\r\n"
    yield b"PROXY UNKNOWN\r\nx"
    yield _V2 + b"\x21\x11\0\x0c" + addresses + b"AMQP"
    yield _V2 + b"\x21\x21\0\x24" + bytes(36)
    yield _V2 + b"\x20\0\0\0x"
    yield _V2 + b"\x21\x11\0\x13" + addresses + b"\x03\0\x04abcd"


_HANDSHAKE: Final = (
    b"GET /ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
)


def _masked(opcode: int, payload: bytes) -> bytes:
    """Return a frame masked with zeros, which keeps the payload readable for mutations."""
    size = bytes((0x80 | len(payload),)) if len(payload) < 126 else b"\xfe" + len(payload).to_bytes(2)
    return bytes((0x80 | opcode,)) + size + bytes(4) + payload


def _websocket_seeds() -> Iterable[bytes]:
    mqtt = b"M" + _HANDSHAKE + b"Sec-WebSocket-Protocol: mqtt\r\n\r\n"
    stomp = b"S" + _HANDSHAKE + b"Sec-WebSocket-Protocol: v12.stomp\r\n\r\n"
    yield mqtt + _masked(2, b"\x10\x0c\0\4MQTT\4\2\0\0\0\0") + _masked(9, b"ping") + _masked(8, b"\x03\xe8")
    yield stomp + _masked(1, b"CONNECT\n\n\0") + _masked(2, b"SEND\n\n\0") + b"\x01\x81\0\0\0\0a\x80\x81\0\0\0\0b"
    yield b"M" + _HANDSHAKE + b"Origin: http://other\r\n\r\n"
    for session in frames_of("websocket", ">"):
        yield b"M" + session


TARGETS: Final = (
    Target(
        "net-proxy-header",
        _proxy,
        ("gateway.net.proxy_header:parse", "gateway.net.proxied:ProxiedProtocol.dataReceived"),
        _proxy_seeds,
        (
            b"PROXY ",
            b"TCP4 ",
            b"TCP6 ",
            b"UNKNOWN",
            b"\r\n",
            _V2,
            b"\x21\x11",
            b"\x20\0",
            b" 0 ",
            b"::",
            b"255.255.255.255",
        ),
        longest=5000,
    ),
    Target(
        "net-websocket",
        _websocket,
        ("gateway.net.websocket:WebSocketProtocol.dataReceived", "gateway.net.origins:OriginRules.refusal"),
        _websocket_seeds,
        (
            _HANDSHAKE,
            b"\r\n\r\n",
            b"Sec-WebSocket-Protocol: mqtt\r\n",
            b"Sec-WebSocket-Extensions: permessage-deflate\r\n",
            b"\x82\x80\0\0\0\0",
            b"\x89\x80\0\0\0\0",
            b"\x88\x82\0\0\0\0\x03\xe8",
            b"\x81\xfe\0\x80\0\0\0\0",
            b"\x82\xff",
            b"\xc2\x80",
        ),
        longest=4096,
    ),
    Target(
        "net-forwarding",
        _forwarding,
        (
            "gateway.net.forwarding.introduction:parse_introduction",
            "gateway.net.introduced:decode_introduced",
            "gateway.net.forwarding.taking:ForwardedConnection.dataReceived",
        ),
        lambda: (
            encode_introduction(_SECRET, "amqp") + b"PROXY TCP4 192.0.2.7 198.51.100.1 56324 5672\r\nAMQP",
            encode_introduction(_SECRET, "web_mqtt"),
            encode_introduction(_SECRET, "amqp", is_resumed=True) + b"PROXY TCP4 192.0.2.7 198.51.100.1 1 5672\r\nAMQP",
            encode_introduction(_SECRET, "amqp", "node b"),
            encode_introduction(_SECRET, "amqp", "b", is_resumed=True, cell=12),
            encode_introduction(_SECRET, "amqp", "b", client=_SECURE)
            + b"PROXY TCP4 192.0.2.7 198.51.100.1 1 2\r\nAMQP",
            encode_introduction("f" * 32, "amqp"),
        ),
        (b"GATEWAY-FORWARD/1 ", _SECRET.encode(), b" amqp", b"\r\n", b"PROXY UNKNOWN\r\n"),
    ),
    Target(
        "net-not-ready",
        _not_ready,
        ("gateway.net.not_ready:NotReady.dataReceived",),
        lambda: (b"\0AMQP\0\0\x09\x01", b"\1\x10\x0c\0\4MQTT\4\2\0\0\0\0", b"\2CONNECT\n\n\0"),
        (b"AMQP", b"\x10", b"\0"),
    ),
)
