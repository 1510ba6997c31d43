"""The way out: straight to the socket while nothing waits, the rest through the transport, in order."""

import os
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from gateway.net import socket_writer as wires
from gateway.net.socket_writer import SocketWriter
from tests.net.pairs import Pair, connected


class Transport:
    """What a Wire uses of Twisted's transports; ``written`` is what went through it."""

    def __init__(self, socket: Any) -> None:
        self.socket = socket
        self.fileno = socket.fileno
        self.dataBuffer = b""
        self._tempDataBuffer: list[bytes] = []
        self.written = b""
        self.producer: Any = None
        self.ends: list[str] = []

    def registerProducer(self, producer: object, streaming: bool) -> None:
        assert streaming
        self.producer = producer

    def unregisterProducer(self) -> None:
        self.producer = None

    def write(self, data: bytes) -> None:
        self.written += data
        self._tempDataBuffer.append(data)

    def loseConnection(self) -> None:
        self.ends.append("lose")

    def loseWriteConnection(self) -> None:  # noqa: N802 - Twisted's name
        self.ends.append("lose write")

    def abortConnection(self) -> None:  # noqa: N802 - Twisted's name
        self.ends.append("abort")


class Line:
    """A socket that takes ``room`` bytes and then no more; its descriptor is none of the system's."""

    numbers = count(1_000_000)
    by_descriptor: "dict[int, Line]" = {}

    def __init__(self, room: int, error: OSError | None = None) -> None:
        self._descriptor = next(self.numbers)
        self.by_descriptor[self._descriptor] = self
        self.room = room
        self.error = error
        self.sent = b""

    def fileno(self) -> int:
        return self._descriptor

    def send(self, data: bytes) -> int:
        if self.error is not None:
            raise self.error
        if not self.room:
            raise BlockingIOError
        taken = bytes(data[: self.room])
        self.room -= len(taken)
        self.sent += taken
        return len(taken)


@pytest.fixture(autouse=True)
def lines(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let what is sent to the descriptor of a line go there."""
    send, writev = wires._send, os.writev

    def send_there(descriptor: int, data: bytes) -> int:
        line = Line.by_descriptor.get(descriptor)
        return send(descriptor, data) if line is None else line.send(data)

    def write_there(descriptor: int, pieces: list[bytes]) -> int:
        line = Line.by_descriptor.get(descriptor)
        return writev(descriptor, pieces) if line is None else line.send(b"".join(pieces))

    monkeypatch.setattr(wires, "_send", send_there)
    monkeypatch.setattr(os, "writev", write_there)
    yield
    Line.by_descriptor.clear()


SMALL = [b"abc", b"defg"]
LARGE = [b"x" * 20_000, b"y" * 20_000]
MANY = [b"%04d" % number for number in range(10_000)]


def wire_to(line: Line) -> tuple[SocketWriter, Transport]:
    transport = Transport(line)
    return SocketWriter(transport, lambda is_congested: None), transport


@pytest.mark.parametrize("pieces", [SMALL, LARGE, MANY], ids=["small", "large", "many"])
@pytest.mark.parametrize("room", [0, 1, 5, 30_000, 1 << 20])
def test_what_does_not_fit_goes_through_the_transport(pieces: list[bytes], room: int) -> None:
    line = Line(room)
    wire, transport = wire_to(line)
    whole = b"".join(pieces)
    wire.send(pieces, len(whole))
    assert line.sent == whole[:room]
    assert transport.written == whole[room:]


def test_while_something_waits_in_the_transport_all_goes_there() -> None:
    line = Line(3)
    wire, transport = wire_to(line)
    wire.send(SMALL, 7)
    line.room = 100
    wire.send([b"later"], 5)
    assert (line.sent, transport.written) == (b"abc", b"defglater")


def test_a_dead_socket_is_left_to_the_transport_to_find() -> None:
    wire, transport = wire_to(Line(100, ConnectionResetError()))
    wire.send(SMALL, 7)
    assert transport.written == b""


def test_once_the_transport_has_caught_up_it_is_bypassed_again() -> None:
    line = Line(3)
    wire, transport = wire_to(line)
    wire.send(SMALL, 7)
    transport._tempDataBuffer.clear()
    line.room = 100
    wire.send([b"later"], 5)
    assert (line.sent, transport.written) == (b"abclater", b"defg")


def test_what_is_said_after_the_end_is_left_to_the_transport() -> None:
    line = Line(100)
    wire, transport = wire_to(line)
    wire.close()
    wire.send(SMALL, 7)
    assert (line.sent, transport.ends) == (b"", ["lose write"])


def test_tls_goes_through_the_transport() -> None:
    class Tls(Transport):
        def getPeerCertificate(self) -> None:  # noqa: N802 - Twisted's name
            return None

    line = Line(100)
    transport = Tls(line)
    wire = SocketWriter(transport, lambda is_congested: None)
    wire.send(SMALL, 7)
    wire.close()
    assert (line.sent, transport.written, transport.ends) == (b"", b"abcdefg", ["lose"])


def test_congestion_is_passed_on() -> None:
    heard: list[bool] = []
    transport = Transport(Line(0))
    SocketWriter(transport, heard.append)
    transport.producer.pauseProducing()
    transport.producer.resumeProducing()
    transport.producer.stopProducing()
    assert heard == [True, False]


def test_the_output_is_ended_first_and_a_connection_can_be_cut() -> None:
    wire, transport = wire_to(Line(100))
    wire.close()
    assert (transport.ends, transport.producer) == (["lose write"], None)
    wire.abort()
    assert transport.ends == ["lose write", "abort"]


def test_a_wire_that_was_told_to_forget_its_socket_does_not_write_to_it() -> None:
    line = Line(100)
    wire, transport = wire_to(line)
    wire.forget()
    wire.send(SMALL, 7)
    assert (line.sent, transport.written) == (b"", b"abcdefg")


@pytest.fixture
def pair() -> Iterator[Pair]:
    with connected() as pair:
        yield pair


def test_a_full_socket_loses_nothing(pair: Pair) -> None:
    here, there = pair
    transport = Transport(here)
    wire = SocketWriter(transport, lambda is_congested: None)
    sent = b""
    for number in range(100):
        pieces = [b"%06d" % number, bytes(50_000)]
        wire.send(pieces, 50_006)
        sent += b"".join(pieces)
    here.close()
    arrived = b""
    while data := there.recv(1 << 20):
        arrived += data
    assert transport.written
    assert arrived + transport.written == sent
