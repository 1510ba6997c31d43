"""WebSockets of foreign pages, and bytes that are none: refused in a turn or two, with hardly a line in the log."""

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


class Door:
    """The server side of connections that raw bytes come to."""

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
        """Return a connection after its handshake, and a client for it."""
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
    pytest.param(b"Origin: http://127.0.0.1.evil.example", b"127.0.0.1:15675", 403, id="a name that begins like ours"),
    pytest.param(b"Origin: file://", b"127.0.0.1:15675", 403, id="a file"),
    pytest.param(b"Origin: http://evil.example:15675", b"evil.example:15675", 403, id="a name led here by foreign DNS"),
    pytest.param(b"Origin: \xff\xfe", b"127.0.0.1:15675", 403, id="no text"),
]


@pytest.mark.parametrize(("origin", "host", "status"), ORIGINS)
def test_a_page_of_another_host_is_refused(origin: bytes, host: bytes, status: int) -> None:
    door = Door()
    assert door.ask(*([origin] if origin else []), host=host).startswith(b"HTTP/1.1 %d" % status)
    assert len(door.echoes) == (status == 101)


def test_a_setting_lets_a_page_in() -> None:
    door = Door(OriginRules(("https://console.example",), any_port=True))
    assert door.ask(b"Origin: https://console.example").startswith(b"HTTP/1.1 101")
    assert door.ask(b"Origin: http://console.example").startswith(b"HTTP/1.1 403")
    assert Door(OriginRules(("*",))).ask(b"Origin: null").startswith(b"HTTP/1.1 101")


def test_a_page_of_this_host_by_its_public_name_is_its_own() -> None:
    door = Door(own_host="192.0.2.7")
    assert door.ask(b"Origin: https://broker.example", host=b"broker.example:15675").startswith(b"HTTP/1.1 101")
    assert door.ask(b"Origin: https://other.example", host=b"broker.example:15675").startswith(b"HTTP/1.1 403")


# Bytes that are no WebSocket's

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
def test_a_handshake_that_is_none_is_refused(head: bytes, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    door = Door(own_host="192.0.2.7")
    server, transport = door.connect()
    server.dataReceived(head)
    server.dataReceived(b"\xff" * 10)
    assert transport.value() == b"" or transport.value()[:10] in (b"HTTP/1.1 4", b"HTTP/1.1 1")
    door.clock.advance(2 * TIMEOUT_S)
    assert transport.disconnecting or transport.disconnected
    assert not [record for record in caplog.records if record.exc_info or record.levelno > logging.INFO]


def test_the_query_of_a_refused_request_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    door = Door()
    server, transport = door.connect()
    head = HEAD.replace(b"/ws", b"/other?password=s3cret") % b"127.0.0.1"
    server.dataReceived(head + b"\r\n")
    assert transport.value().startswith(b"HTTP/1.1 404")
    assert "s3cret" not in str([vars(record) for record in caplog.records])


def test_refused_peers_cost_one_line_in_a_while(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    door = Door()
    for _ in range(50):
        door.ask(b"Origin: https://evil.example")
    assert len(caplog.records) == 1


def test_frames_of_random_bytes_raise_nothing() -> None:
    generator = random.Random(13)
    first = [0x81, 0x82, 0x88, 0x89, 0x8A, 0x01, 0x02, 0x00, 0x80, 0x83, 0xC2, 0x08, 0x09]
    for _ in range(400):
        door = Door()
        server, _, _ = door.open()
        frames = b""
        for _ in range(generator.randrange(1, 6)):
            size = generator.choice([0, 1, 2, 3, 124, 125, 126, 127])
            mask = generator.choice([0x80, 0x80, 0x80, 0])
            frames += bytes([generator.choice(first), mask | size]) + generator.randbytes(generator.randrange(140))
        cut = generator.randrange(len(frames) + 1)
        server.dataReceived(frames[:cut])
        server.dataReceived(frames[cut:])
        door.clock.advance(1)
        door.echoes[0].transport.loseConnection()  # type: ignore[union-attr]
        server.dataReceived(generator.randbytes(20))
        door.clock.advance(1)


@pytest.mark.parametrize("reason", ["", "x" * 123, "x" * 1000, "ü" * 100, "\U0001f600" * 40])
def test_a_close_with_any_reason_is_said_and_answered(reason: str) -> None:
    door = Door()
    server, transport, client = door.open()
    door.echoes[0].transport.loseConnection(4000, reason)  # type: ignore[union-attr, call-arg]
    client.receive_data(transport.value())
    (close,) = [event for event in client.events() if isinstance(event, CloseConnection)]
    assert reason.startswith(close.reason or "")
    server.dataReceived(client.send(close.response()))
    assert transport.disconnecting


def test_a_close_crosses_ours_and_nothing_follows() -> None:
    door = Door()
    server, transport, client = door.open()
    frames = client.send(BytesMessage(b"x")) + client.send(CloseConnection(1000, "bye"))
    door.echoes[0].transport.loseConnection()  # type: ignore[union-attr]
    server.dataReceived(frames)
    server.dataReceived(frames)
    door.echoes[0].transport.write(b"late")  # type: ignore[union-attr]
    door.echoes[0].transport.loseConnection()  # type: ignore[union-attr]
    assert transport.disconnecting


def test_a_peer_that_does_not_close_its_side_is_cut_off() -> None:
    door = Door()
    server, transport, client = door.open()
    server.dataReceived(client.send(CloseConnection(1000, "bye")))
    assert not transport.disconnected
    door.clock.advance(10)
    assert transport.disconnected


# A budget for a turn


@pytest.mark.parametrize("event", [Ping(b""), BytesMessage(b""), BytesMessage(b"x")])
def test_a_flood_of_small_frames_is_served_in_many_turns(event: Any) -> None:
    door = Door()
    server, transport, client = door.open()
    server.dataReceived(client.send(event) * 10_000)
    assert transport.producerState == "paused"
    assert len(door.echoes[0].heard) <= MOST_EVENTS
    for _ in range(10_000 // MOST_EVENTS + 1):
        door.clock.advance(0)
    assert transport.producerState == "producing"
    assert len(door.echoes[0].heard) == (10_000 if event == BytesMessage(b"x") else 0)


def test_a_protocol_that_pauses_is_not_resumed_by_the_end_of_a_flood() -> None:
    door = Door()
    server, transport, client = door.open()
    server.dataReceived(client.send(Ping(b"")) * 1000)
    door.echoes[0].transport.pauseProducing()  # type: ignore[union-attr]
    for _ in range(20):
        door.clock.advance(0)
    assert transport.producerState == "paused"
    door.echoes[0].transport.resumeProducing()  # type: ignore[union-attr]
    assert transport.producerState == "producing"


def test_stomp_is_judged_likewise() -> None:
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


def test_connections_without_a_handshake_are_bounded() -> None:
    door = Door()
    silent = [door.connect()[1] for _ in range(MOST_HANDSHAKES)]
    assert door.ask().startswith(b"HTTP/1.1 101")
    assert [transport.disconnected for transport in silent[:2]] == [True, False]
