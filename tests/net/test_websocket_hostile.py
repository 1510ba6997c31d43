"""WebSockets of foreign pages, and invalid bytes: refused within a turn or two, with few log lines."""

import logging
import random
from typing import Any

import pytest
from twisted.internet.address import IPv4Address
from twisted.internet.protocol import Factory
from twisted.internet.testing import StringTransport
from wsproto import ConnectionType, WSConnection
from wsproto.events import BytesMessage, CloseConnection, Ping, RejectConnection, Request

from gateway.net.origins import OriginRules
from gateway.net.websocket import MOST_EVENTS, MOST_HANDSHAKES, MQTT, STOMP, WebSocketFactory
from gateway.testing import FakeClock
from tests.net.test_websocket import TIMEOUT_S, Echo

HEAD = (
    b"GET /ws HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: mqtt\r\n"
)


class RawServer:
    """The server side of connections that receive raw bytes."""

    def __init__(self, origins: OriginRules | None = None, own_host: str = "127.0.0.1") -> None:
        self.clock = FakeClock()
        self.echoes: list[Echo] = []
        self.own_host = own_host
        rules = origins or OriginRules(any_port=True)
        factory = Factory.forProtocol(self._echo)  # type: ignore[arg-type]
        self.factory = WebSocketFactory(factory, MQTT, "/ws", self.clock, TIMEOUT_S, rules)

    def _echo(self) -> Echo:
        self.echoes.append(Echo())
        return self.echoes[-1]

    def connect(self) -> tuple[Any, Any]:
        transport: Any = StringTransport(  # type: ignore[no-untyped-call]
            hostAddress=IPv4Address("TCP", self.own_host, 15675), peerAddress=IPv4Address("TCP", "127.0.0.1", 50_000)
        )
        server = self.factory.buildProtocol(None)
        server.makeConnection(transport)
        return server, transport

    def ask(self, *headers: bytes, host: bytes = b"127.0.0.1:15675") -> bytes:
        server, transport = self.connect()
        server.dataReceived(HEAD % host + b"".join(header + b"\r\n" for header in headers) + b"\r\n")
        return bytes(transport.value())

    def open(self) -> tuple[Any, Any, WSConnection]:
        """Return a connection after its handshake, and its client."""
        server, transport = self.connect()
        client = WSConnection(ConnectionType.CLIENT)
        server.dataReceived(client.send(Request(host="127.0.0.1", target="/ws", subprotocols=["mqtt"])))
        client.receive_data(transport.value())
        list(client.events())
        transport.clear()
        return server, transport, client


ORIGINS = [
    pytest.param(b"", b"127.0.0.1:15675", 101, id="a program"),
    pytest.param(b"Origin: http://127.0.0.1:15675", b"127.0.0.1:15675", 101, id="a page of this listener"),
    pytest.param(b"Origin: http://localhost:8080", b"127.0.0.1:15675", 101, id="a page of this machine"),
    pytest.param(b"Origin: https://evil.example", b"127.0.0.1:15675", 403, id="a foreign page"),
    pytest.param(b"Origin: null", b"127.0.0.1:15675", 403, id="a sandboxed page"),
    pytest.param(
        b"Origin: http://127.0.0.1.evil.example", b"127.0.0.1:15675", 403, id="a name with the prefix of an own address"
    ),
    pytest.param(b"Origin: file://", b"127.0.0.1:15675", 403, id="a file"),
    pytest.param(
        b"Origin: http://evil.example:15675",
        b"evil.example:15675",
        403,
        id="a foreign name that resolves to this machine",
    ),
    pytest.param(b"Origin: \xff\xfe", b"127.0.0.1:15675", 403, id="no text"),
]


@pytest.mark.parametrize(("origin", "host", "status"), ORIGINS)
def test_a_page_of_another_host_is_refused(origin: bytes, host: bytes, status: int) -> None:
    raw_server = RawServer()
    assert raw_server.ask(*([origin] if origin else []), host=host).startswith(b"HTTP/1.1 %d" % status)
    assert len(raw_server.echoes) == (status == 101)


def test_a_page_can_be_allowed_by_a_setting() -> None:
    raw_server = RawServer(OriginRules(("https://console.example",), any_port=True))
    assert raw_server.ask(b"Origin: https://console.example").startswith(b"HTTP/1.1 101")
    assert raw_server.ask(b"Origin: http://console.example").startswith(b"HTTP/1.1 403")
    assert RawServer(OriginRules(("*",))).ask(b"Origin: null").startswith(b"HTTP/1.1 101")


def test_a_page_under_the_hosts_public_name_is_allowed() -> None:
    raw_server = RawServer(own_host="192.0.2.7")
    assert raw_server.ask(b"Origin: https://broker.example", host=b"broker.example:15675").startswith(b"HTTP/1.1 101")
    assert raw_server.ask(b"Origin: https://other.example", host=b"broker.example:15675").startswith(b"HTTP/1.1 403")


# Invalid bytes

BAD_HEADS = [
    b"\x16\x03\x01\x00\xa5\x01\x00\x00", b"\x00\r\n\r\n", b"GET /\x9d HTTP/1.1\r\n\r\n", HEAD % b"\xff\xff" + b"\r\n",
    HEAD % b"xn--\xc3" + b"\r\n", HEAD % (b"a" * 70 + b"." + b"b" * 70) + b"\r\n", HEAD % b"..a" + b"\r\n",
    HEAD % b"x" + b"Sec-WebSocket-Protocol: \xff\r\n\r\n", HEAD % b"x" + b"Sec-WebSocket-Extensions: \xe4;\xff\r\n\r\n",
    HEAD % b"x" + b"Connection: \xff\r\n\r\n", HEAD % b"x" + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n",
    HEAD % b"x" + b"Content-Length: 5\r\n\r\nhello", HEAD % b"x" + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"GET /ws HTTP/1.1\r\nHost: x\r\n\r\n", b"POST /ws HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
    b"GET /ws HTTP/1.0\r\n\r\n", b"GET /ws?password=secret HTTP/1.1\r\nHost: x\r\n\r\n", b"x" * 100_000,
    HEAD % b"x" + b"X: " + b"y" * 60_000 + b"\r\n\r\n",
]  # fmt: skip


@pytest.mark.parametrize("head", BAD_HEADS, ids=lambda head: repr(head[-24:]))
def test_a_malformed_handshake_is_refused(head: bytes, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    raw_server = RawServer(own_host="192.0.2.7")
    server, transport = raw_server.connect()
    server.dataReceived(head)
    server.dataReceived(b"\xff" * 10)
    assert transport.value() == b"" or transport.value()[:10] in (b"HTTP/1.1 4", b"HTTP/1.1 1")
    raw_server.clock.advance(2 * TIMEOUT_S)
    assert transport.disconnecting or transport.disconnected
    assert not [record for record in caplog.records if record.exc_info or record.levelno > logging.INFO]


def test_the_query_of_a_refused_request_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    raw_server = RawServer()
    server, transport = raw_server.connect()
    head = HEAD.replace(b"/ws", b"/other?password=s3cret") % b"127.0.0.1"
    server.dataReceived(head + b"\r\n")
    assert transport.value().startswith(b"HTTP/1.1 404")
    assert "s3cret" not in str([vars(record) for record in caplog.records])


def test_refused_peers_are_logged_once_per_interval(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    raw_server = RawServer()
    for _ in range(50):
        raw_server.ask(b"Origin: https://evil.example")
    assert len(caplog.records) == 1


def test_random_bytes_as_frames_raise_no_exception() -> None:
    generator = random.Random(13)
    first = [0x81, 0x82, 0x88, 0x89, 0x8A, 0x01, 0x02, 0x00, 0x80, 0x83, 0xC2, 0x08, 0x09]
    for _ in range(400):
        raw_server = RawServer()
        server, _, _ = raw_server.open()
        frames = b""
        for _ in range(generator.randrange(1, 6)):
            size = generator.choice([0, 1, 2, 3, 124, 125, 126, 127])
            mask = generator.choice([0x80, 0x80, 0x80, 0])
            frames += bytes([generator.choice(first), mask | size]) + generator.randbytes(generator.randrange(140))
        cut = generator.randrange(len(frames) + 1)
        server.dataReceived(frames[:cut])
        server.dataReceived(frames[cut:])
        raw_server.clock.advance(1)
        raw_server.echoes[0].transport.loseConnection()  # type: ignore[union-attr]
        server.dataReceived(generator.randbytes(20))
        raw_server.clock.advance(1)


@pytest.mark.parametrize("reason", ["", "x" * 123, "x" * 1000, "ü" * 100, "\U0001f600" * 40])
def test_a_close_with_any_reason_is_sent_and_answered(reason: str) -> None:
    raw_server = RawServer()
    server, transport, client = raw_server.open()
    raw_server.echoes[0].transport.loseConnection(4000, reason)  # type: ignore[union-attr, call-arg]
    client.receive_data(transport.value())
    (close,) = [event for event in client.events() if isinstance(event, CloseConnection)]
    assert reason.startswith(close.reason or "")
    server.dataReceived(client.send(close.response()))
    assert transport.disconnecting


def test_nothing_follows_when_both_sides_close_at_once() -> None:
    raw_server = RawServer()
    server, transport, client = raw_server.open()
    frames = client.send(BytesMessage(b"x")) + client.send(CloseConnection(1000, "bye"))
    raw_server.echoes[0].transport.loseConnection()  # type: ignore[union-attr]
    server.dataReceived(frames)
    server.dataReceived(frames)
    raw_server.echoes[0].transport.write(b"late")  # type: ignore[union-attr]
    raw_server.echoes[0].transport.loseConnection()  # type: ignore[union-attr]
    assert transport.disconnecting


def test_a_peer_that_does_not_close_its_side_is_disconnected() -> None:
    raw_server = RawServer()
    server, transport, client = raw_server.open()
    server.dataReceived(client.send(CloseConnection(1000, "bye")))
    assert not transport.disconnected
    raw_server.clock.advance(10)
    assert transport.disconnected


# The budget of a turn


@pytest.mark.parametrize("event", [Ping(b""), BytesMessage(b""), BytesMessage(b"x")])
def test_a_flood_of_small_frames_is_served_in_many_turns(event: Any) -> None:
    raw_server = RawServer()
    server, transport, client = raw_server.open()
    server.dataReceived(client.send(event) * 10_000)
    assert transport.producerState == "paused"
    assert len(raw_server.echoes[0].received) <= MOST_EVENTS
    for _ in range(10_000 // MOST_EVENTS + 1):
        raw_server.clock.advance(0)
    assert transport.producerState == "producing"
    assert len(raw_server.echoes[0].received) == (10_000 if event == BytesMessage(b"x") else 0)


def test_a_paused_protocol_is_not_resumed_at_the_end_of_a_flood() -> None:
    raw_server = RawServer()
    server, transport, client = raw_server.open()
    server.dataReceived(client.send(Ping(b"")) * 1000)
    raw_server.echoes[0].transport.pauseProducing()  # type: ignore[union-attr]
    for _ in range(20):
        raw_server.clock.advance(0)
    assert transport.producerState == "paused"
    raw_server.echoes[0].transport.resumeProducing()  # type: ignore[union-attr]
    assert transport.producerState == "producing"


def test_stomp_follows_the_same_rules() -> None:
    clock = FakeClock()
    factory = WebSocketFactory(Factory.forProtocol(Echo), STOMP, "/ws", clock, TIMEOUT_S)
    server = factory.buildProtocol(None)
    transport: Any = StringTransport()  # type: ignore[no-untyped-call]
    server.makeConnection(transport)
    client = WSConnection(ConnectionType.CLIENT)
    head = [(b"Origin", b"https://evil.example")]
    server.dataReceived(client.send(Request(host="broker.example", target="/ws", extra_headers=head)))
    client.receive_data(transport.value())
    assert [event.status_code for event in client.events() if isinstance(event, RejectConnection)] == [403]


def test_the_number_of_connections_without_a_handshake_is_limited() -> None:
    raw_server = RawServer()
    silent = [raw_server.connect()[1] for _ in range(MOST_HANDSHAKES)]
    assert raw_server.ask().startswith(b"HTTP/1.1 101")
    assert [transport.disconnected for transport in silent[:2]] == [True, False]
