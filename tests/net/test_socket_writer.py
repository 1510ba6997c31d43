"""``SocketWriter``: writes directly to the socket while nothing waits, otherwise through the transport, in order."""

import os
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from gateway.net import socket_writer as wires
from gateway.net.socket_writer import SocketWriter
from tests.net.pairs import Pair, connected

#: They replace a system call, which is a constant of the compiled module.
pytestmark = pytest.mark.source


class Congestion:
    """Notes what a writer reports."""

    def __init__(self, reports: list[bool]) -> None:
        self._reports = reports

    def congested(self, is_congested: bool) -> None:
        self._reports.append(is_congested)


class Transport:
    """The interface of Twisted's transports that ``SocketWriter`` uses; ``written`` is the data sent through it."""

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


class LimitedSocket:
    """A socket that takes ``room`` bytes; its descriptor does not exist in the system."""

    numbers = count(1_000_000)
    by_descriptor: "dict[int, LimitedSocket]" = {}

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
    """Redirect output for the descriptor of a ``LimitedSocket`` to it."""
    send, writev = wires._send, os.writev

    def send_there(descriptor: int, data: bytes) -> int:
        line = LimitedSocket.by_descriptor.get(descriptor)
        return send(descriptor, data) if line is None else line.send(data)

    def write_there(descriptor: int, pieces: list[bytes]) -> int:
        line = LimitedSocket.by_descriptor.get(descriptor)
        return writev(descriptor, pieces) if line is None else line.send(b"".join(pieces))

    monkeypatch.setattr(wires, "_send", send_there)
    monkeypatch.setattr(os, "writev", write_there)
    yield
    LimitedSocket.by_descriptor.clear()


SMALL = [b"abc", b"defg"]
LARGE = [b"x" * 20_000, b"y" * 20_000]
MANY = [b"%04d" % number for number in range(10_000)]


def writer_to(line: LimitedSocket) -> tuple[SocketWriter, Transport]:
    transport = Transport(line)
    return SocketWriter(transport, Congestion([])), transport


#: The frames of a message of megabytes.
FRAMES = [piece for number in range(40) for piece in (b"%07d" % number, bytes(131_064), b"\xce")]


@pytest.mark.parametrize("pieces", [SMALL, LARGE, MANY, FRAMES], ids=["small", "large", "many", "frames"])
@pytest.mark.parametrize("room", [0, 1, 5, 30_000, 1 << 20])
def test_data_that_does_not_fit_the_socket_goes_through_the_transport(pieces: list[bytes], room: int) -> None:
    line = LimitedSocket(room)
    wire, transport = writer_to(line)
    whole = b"".join(pieces)
    wire.send(pieces, len(whole))
    assert line.sent == whole[:room]
    assert transport.written == whole[room:]


def test_all_data_goes_through_the_transport_while_its_buffer_holds_some() -> None:
    line = LimitedSocket(3)
    wire, transport = writer_to(line)
    wire.send(SMALL, 7)
    line.room = 100
    wire.send([b"later"], 5)
    assert (line.sent, transport.written) == (b"abc", b"defglater")


def test_a_broken_socket_is_reported_by_the_transport() -> None:
    wire, transport = writer_to(LimitedSocket(100, ConnectionResetError()))
    wire.send(SMALL, 7)
    assert transport.written == b""


def test_an_empty_transport_buffer_is_bypassed_again() -> None:
    line = LimitedSocket(3)
    wire, transport = writer_to(line)
    wire.send(SMALL, 7)
    transport._tempDataBuffer.clear()
    line.room = 100
    wire.send([b"later"], 5)
    assert (line.sent, transport.written) == (b"abclater", b"defg")


def test_data_after_the_close_goes_to_the_transport() -> None:
    line = LimitedSocket(100)
    wire, transport = writer_to(line)
    wire.close()
    wire.send(SMALL, 7)
    assert (line.sent, transport.ends) == (b"", ["lose write"])


def test_tls_goes_through_the_transport() -> None:
    class Tls(Transport):
        def getPeerCertificate(self) -> None:  # noqa: N802 - Twisted's name
            return None

    line = LimitedSocket(100)
    transport = Tls(line)
    wire = SocketWriter(transport, Congestion([]))
    wire.send(SMALL, 7)
    wire.close()
    assert (line.sent, transport.written, transport.ends) == (b"", b"abcdefg", ["lose"])


def test_congestion_is_reported() -> None:
    received: list[bool] = []
    transport = Transport(LimitedSocket(0))
    SocketWriter(transport, Congestion(received))
    transport.producer.pauseProducing()
    transport.producer.resumeProducing()
    transport.producer.stopProducing()
    assert received == [True, False]


def test_the_output_side_is_closed_first_and_a_connection_can_be_aborted() -> None:
    wire, transport = writer_to(LimitedSocket(100))
    wire.close()
    assert (transport.ends, transport.producer) == (["lose write"], None)
    wire.abort()
    assert transport.ends == ["lose write", "abort"]


def test_after_forget_the_socket_is_not_written_to() -> None:
    line = LimitedSocket(100)
    wire, transport = writer_to(line)
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
    wire = SocketWriter(transport, Congestion([]))
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
