"""WebSocket in front of a protocol, with a client based on wsproto; no sockets, no clock."""

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.internet.protocol import Factory, Protocol
from twisted.internet.testing import StringTransport
from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Event,
    Ping,
    Pong,
    RejectConnection,
    Request,
    TextMessage,
)

from gateway.net.websocket import MQTT, STOMP, Dialect, WebSocketFactory, WebSocketProtocol
from gateway.testing import FakeClock

TIMEOUT_S = 10


class Echo(Protocol):
    """Sends ``hello`` first and echoes its input; records the input and the end."""

    def __init__(self) -> None:
        self.received: list[bytes] = []
        self.end = ""

    def connectionMade(self) -> None:
        self.transport.write(b"hello")  # type: ignore[union-attr]

    def dataReceived(self, data: bytes) -> None:
        self.received.append(data)
        self.transport.write(data)  # type: ignore[union-attr]

    def connectionLost(self, reason: Any = None) -> None:
        self.end = "lost"


class Peer:
    """A client and the server side of its connection."""

    def __init__(self, dialect: Dialect = MQTT, client_type: ConnectionType = ConnectionType.CLIENT) -> None:
        self.clock = FakeClock()
        self.echo = Echo()
        factory = Factory.forProtocol(lambda: self.echo)  # type: ignore[arg-type]
        self.server: WebSocketProtocol = WebSocketFactory(factory, dialect, "/ws", self.clock, TIMEOUT_S).buildProtocol(
            None
        )
        self.transport = StringTransport()
        self.server.makeConnection(self.transport)
        self.client = WSConnection(client_type)

    def ask(self, *subprotocols: str, target: str = "/ws") -> list[Event]:
        return self.send(Request(host="localhost", target=target, subprotocols=list(subprotocols)))

    def open(self, *subprotocols: str) -> "Peer":
        self.ask(*(subprotocols or ("mqtt",)))
        return self

    def send(self, *events: Event) -> list[Event]:
        for event in events:
            self.server.dataReceived(self.client.send(event))
        return self.receive()

    def receive(self) -> list[Event]:
        data_of = self.transport.value()
        self.transport.clear()
        if data_of:
            self.client.receive_data(data_of)
        return list(self.client.events())

    @property
    def is_ended(self) -> bool:
        return self.transport.disconnecting or self.transport.disconnected


def accepted(events: Iterable[Event]) -> str | None:
    """Return the subprotocol of the accepted handshake."""
    return next(event.subprotocol for event in events if isinstance(event, AcceptConnection))


def data_of(events: Iterable[Event]) -> list[str | bytes]:
    return [bytes(event.data) if isinstance(event, BytesMessage) else event.data
            for event in events if isinstance(event, BytesMessage | TextMessage)]  # fmt: skip


def closed_with(events: Iterable[Event]) -> list[int]:
    return [event.code for event in events if isinstance(event, CloseConnection)]


# The handshake

OFFERS = [
    pytest.param(MQTT, ["mqtt"], "mqtt", id="MQTT-6.0.0-4"),
    pytest.param(MQTT, ["mqttv3.1"], "mqttv3.1", id="MQTT 3.1"),
    pytest.param(MQTT, ["chat", "mqtt"], "mqtt", id="MQTT among others"),
    pytest.param(STOMP, ["v12.stomp"], "v12.stomp", id="STOMP 1.2"),
    pytest.param(STOMP, ["v10.stomp", "v11.stomp"], "v10.stomp", id="the client's own order"),
    pytest.param(STOMP, [], None, id="STOMP without a subprotocol"),
    pytest.param(STOMP, ["chat"], None, id="STOMP with another subprotocol"),
]


@pytest.mark.parametrize(("dialect", "offered", "chosen"), OFFERS)
def test_the_first_known_subprotocol_is_chosen(dialect: Dialect, offered: list[str], chosen: str | None) -> None:
    peer = Peer(dialect)
    received = peer.ask(*offered)
    assert accepted(received) == chosen
    assert data_of(received) == [b"hello"]


REFUSED = [
    pytest.param([], "/ws", 400, id="MQTT-6.0.0-3 nothing offered"),
    pytest.param(["v12.stomp"], "/ws", 400, id="another protocol"),
    pytest.param(["mqtt"], "/", 404, id="another path"),
    pytest.param(["mqtt"], "/wsx", 404, id="a longer path"),
]


@pytest.mark.parametrize(("offered", "target", "status"), REFUSED)
def test_an_unknown_path_or_subprotocol_is_refused(offered: list[str], target: str, status: int) -> None:
    peer = Peer()
    refusals = [event for event in peer.ask(*offered, target=target) if isinstance(event, RejectConnection)]
    assert [refusal.status_code for refusal in refusals] == [status]
    assert peer.is_ended
    assert peer.echo.transport is None


def test_the_path_may_carry_a_query() -> None:
    assert accepted(Peer().ask("mqtt", target="/ws?token=1")) == "mqtt"


NO_WEBSOCKET = [
    pytest.param(b"GET /ws HTTP/1.1\r\nHost: here\r\n\r\n", b"400", id="no upgrade"),
    pytest.param(b"POST /ws HTTP/1.1\r\nHost: here\r\nContent-Length: 0\r\n\r\n", b"400", id="no GET"),
    pytest.param(b"\x10\x0c\x00\x04MQTT\x04\x02\x00\x3c\x00\x00\r\n\r\n", b"400", id="MQTT without WebSocket"),
    pytest.param(b"GET /" + b"x" * 100_000, b"400", id="a request without end"),
    pytest.param(
        b"GET /ws HTTP/1.1\r\nHost: here\r\nUpgrade: websocket\r\nConnection: upgrade\r\nSec-WebSocket-Version: 8\r\n"
        b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n", b"426", id="an old version",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("request_bytes", "status"), NO_WEBSOCKET)
def test_an_invalid_handshake_is_answered_and_the_connection_ends(request_bytes: bytes, status: bytes) -> None:
    peer = Peer()
    peer.server.dataReceived(request_bytes)
    assert peer.transport.value().startswith(b"HTTP/1.1 " + status)
    assert peer.is_ended


def test_a_handshake_has_a_time_limit() -> None:
    peer = Peer()
    peer.server.dataReceived(b"GET /ws HTTP/1.1\r\n")
    peer.clock.advance(TIMEOUT_S - 0.1)
    assert not peer.is_ended
    peer.clock.advance(0.2)
    assert peer.transport.disconnected


def test_a_client_may_be_idle_after_the_handshake() -> None:
    peer = Peer().open()
    peer.clock.advance(TIMEOUT_S * 10)
    assert not peer.is_ended


# Messages


@settings(max_examples=40)
@given(st.data())
def test_bytes_may_be_cut_anywhere(data: st.DataObject) -> None:
    peer = Peer().open()
    frames = b"".join(
        peer.client.send(event)
        for event in (
            BytesMessage(b"one"),
            BytesMessage(b"tw", message_finished=False),
            Ping(b"are you there"),
            BytesMessage(b"o", message_finished=True),
            BytesMessage(bytes(70_000)),
        )
    )
    cuts = sorted(data.draw(st.lists(st.integers(0, len(frames)), max_size=8)))
    for start, stop in zip([0, *cuts], [*cuts, len(frames)], strict=True):
        peer.server.dataReceived(frames[start:stop])
    assert b"".join(peer.echo.received) == b"onetwo" + bytes(70_000)
    assert sum(isinstance(event, Pong) for event in peer.receive()) == 1


@pytest.mark.parametrize("size", [1, 2, 3, 7, 50, 1000])
def test_frames_may_arrive_together_with_the_handshake(size: int) -> None:
    peer = Peer()
    request = peer.client.send(Request(host="localhost", target="/ws", subprotocols=["mqtt"]))
    masked = b"\x82\x85\x00\x00\x00\x00early\x82\x84\x00\x00\x00\x00late"
    data = request + masked
    for start in range(0, len(data), size):
        peer.server.dataReceived(data[start : start + size])
    assert b"".join(peer.echo.received) == b"earlylate"


def test_a_part_of_a_message_is_passed_on_before_the_rest_arrives() -> None:
    peer = Peer().open()
    frame = peer.client.send(BytesMessage(bytes(1_000_000)))
    peer.server.dataReceived(frame[:5000])
    assert 4900 < sum(map(len, peer.echo.received)) < 5000


def test_6_0_0_1_text_ends_a_connection_of_mqtt() -> None:
    peer = Peer().open()
    assert closed_with(peer.send(TextMessage("text"))) == [1003]
    assert peer.is_ended
    assert peer.echo.received == []


def test_stomp_answers_text_with_text_and_bytes_with_bytes() -> None:
    peer = Peer(STOMP).open("v12.stomp")
    assert data_of(peer.send(TextMessage("grüß"))) == ["grüß"]
    assert data_of(peer.send(BytesMessage(b"bytes"))) == [b"bytes"]


def test_data_that_is_not_utf_8_is_sent_as_binary_even_to_a_text_peer() -> None:
    peer = Peer(STOMP).open("v12.stomp")
    peer.send(TextMessage("text"))
    peer.echo.transport.write(b"\xff\xfe")  # type: ignore[union-attr]
    assert data_of(peer.receive()) == [b"\xff\xfe"]


# Pings and ends


def test_a_ping_is_answered_with_its_payload() -> None:
    assert [bytes(pong.payload) for pong in Peer().open().send(Ping(b"x")) if isinstance(pong, Pong)] == [b"x"]


def test_5_5_3_only_the_last_ping_is_answered_to_a_peer_that_does_not_read() -> None:
    peer = Peer().open()
    producer: Any = Recorder()
    peer.echo.transport.registerProducer(producer, True)  # type: ignore[union-attr]
    below: Any = peer.transport.producer
    below.pauseProducing()
    assert peer.send(*(Ping(bytes([number])) for number in range(100))) == []
    below.resumeProducing()
    assert [bytes(pong.payload) for pong in peer.receive() if isinstance(pong, Pong)] == [bytes([99])]
    assert producer.calls == ["pause", "resume"]


class Recorder:
    """A producer that records its calls."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def pauseProducing(self) -> None:
        self.calls.append("pause")

    def resumeProducing(self) -> None:
        self.calls.append("resume")

    def stopProducing(self) -> None:
        self.calls.append("stop")


def test_a_close_is_answered_and_the_connection_ends() -> None:
    peer = Peer().open()
    assert closed_with(peer.send(CloseConnection(1000))) == [1000]
    assert peer.is_ended


def test_the_servers_close_waits_for_its_answer() -> None:
    peer = Peer().open()
    peer.echo.transport.loseConnection()  # type: ignore[union-attr]
    peer.echo.transport.write(b"too late")  # type: ignore[union-attr]
    received = peer.receive()
    assert closed_with(received) == [1000]
    assert data_of(received) == []
    assert not peer.is_ended
    close = next(event for event in received if isinstance(event, CloseConnection))
    peer.send(close.response())
    assert peer.is_ended


def test_data_after_the_servers_close_is_not_passed_on() -> None:
    peer = Peer().open()
    peer.echo.transport.loseConnection()  # type: ignore[union-attr]
    peer.server.dataReceived(peer.client.send(BytesMessage(b"late")))
    assert peer.echo.received == []


BROKEN = [
    pytest.param(b"\x83\x80\0\0\0\0", 1002, id="5.2 a reserved opcode"),
    pytest.param(b"\xc2\x80\0\0\0\0", 1002, id="5.2 a reserved bit"),
    pytest.param(b"\x82\x01x", 1002, id="5.1 not masked"),
    pytest.param(b"\x89\xfe\x00\x80\0\0\0\0" + bytes(128), 1002, id="5.5 a ping too long"),
    pytest.param(b"\x09\x80\0\0\0\0", 1002, id="5.4 a ping in parts"),
    pytest.param(b"\x80\x80\0\0\0\0", 1002, id="5.4 a continuation of nothing"),
    pytest.param(b"\x81\x81\0\0\0\0\xff", 1007, id="8.1 text that is not UTF-8"),
]


@pytest.mark.parametrize(("frame", "code"), BROKEN)
def test_a_broken_frame_is_answered_with_its_code(frame: bytes, code: int) -> None:
    peer = Peer(STOMP).open("v12.stomp")
    peer.server.dataReceived(frame)
    assert closed_with(peer.receive()) == [code]
    assert peer.is_ended
    peer.server.dataReceived(b"more")


def test_the_protocol_is_notified_of_the_end() -> None:
    peer = Peer().open()
    peer.server.connectionLost()
    assert peer.echo.end == "lost"


@settings(max_examples=60)
@given(st.binary(max_size=400), st.booleans())
def test_any_bytes_keep_the_connection_open_or_close_it_in_order(data: bytes, is_open: bool) -> None:
    peer = Peer(STOMP)
    if is_open:
        peer.open("v12.stomp")
    peer.server.dataReceived(data)
    peer.server.dataReceived(data)
    peer.server.connectionLost()
    assert peer.echo.end == ("lost" if is_open else "")
