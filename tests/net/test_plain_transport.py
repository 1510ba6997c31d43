"""``PlainTransport``: its buffer, its half close and its end, over a pair of sockets and a loop by hand."""

import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from twisted.internet.error import ConnectionAborted, ConnectionDone, ConnectionLost
from twisted.internet.main import CONNECTION_DONE, CONNECTION_LOST

from gateway.net.login_poller import LoginPoller
from gateway.net.plain_transport import PlainTransport
from tests.waiting import wait_until

#: More than the buffers of a pair of sockets take.
MUCH = 8 * 1024 * 1024


class Loop:
    """Polls one transport; ``left`` are those that have ended, with their reasons."""

    def __init__(self) -> None:
        self.login_poller = LoginPoller()
        self.served: dict[int, Any] = {}
        self.left: list[tuple[PlainTransport, Any]] = []

    def serve_plain(self, transport: PlainTransport, io: Any, descriptor: int) -> None:
        self.served[descriptor] = transport

    def forget_plain(self, descriptor: int) -> None:
        self.served.pop(descriptor, None)

    def ended(self, transport: PlainTransport, why: Any) -> None:
        self.left.append((transport, why))

    def turn(self) -> int:
        """Serve the events of one poll, then the ends; return the number of events."""
        events = self.login_poller.settled.poll(0)
        for descriptor, event in events:
            transport = self.served[descriptor]
            if (why := transport.serve(event)) is not None:
                transport.end(why)
        while self.left:
            transport, why = self.left.pop(0)
            transport.lost(why)
        return len(events)


class Served:
    """The protocol and what reads for it: keeps the bytes, and why the connection ended."""

    def __init__(self) -> None:
        self.descriptor = -1
        self.received = b""
        self.ends: list[BaseException] = []

    def listen(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def read(self) -> Any:
        try:
            data = socket.socket.recv(self.line, 1 << 20)
        except BlockingIOError:
            return None
        except OSError:
            return CONNECTION_LOST
        self.received += data
        return None if data else CONNECTION_DONE

    line: socket.socket

    def connectionLost(self, reason: Any) -> None:
        self.ends.append(reason.value)


class Producer:
    """Keeps what it was told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def pauseProducing(self) -> None:
        self.told.append("full")

    def resumeProducing(self) -> None:
        self.told.append("empty")


class Place:
    """A transport, its loop, its protocol and its client."""

    def __init__(self, line: socket.socket, client: socket.socket) -> None:
        self.loop, self.served, self.client = Loop(), Served(), client
        self.received = b""  # by the client, until the end
        self.served.line = line
        self.transport = PlainTransport(line.fileno(), self.served, ("127.0.0.1", 1), ("127.0.0.1", 2), self.loop)
        self.transport.read_by(self.served)

    def run_until(self, condition: Any) -> None:
        def turned() -> bool:
            self.loop.turn()
            return bool(condition())

        wait_until(turned)

    def read_all(self) -> int:
        """Return how many bytes the client gets until the end, while the loop runs."""
        received, is_over = bytearray(), False

        def read() -> bool:
            nonlocal is_over
            with suppress(BlockingIOError):
                data = self.client.recv(1 << 20)
                received.extend(data)
                is_over = not data
            return is_over

        self.run_until(read)
        self.received = bytes(received)
        return len(received)


@pytest.fixture
def place() -> Iterator[Place]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = socket.create_connection(listener.getsockname())
        line, _ = listener.accept()
    line.setblocking(False)
    client.setblocking(False)
    place = Place(line, client)
    yield place
    place.transport.lost(CONNECTION_DONE)
    line.detach()  # the transport has closed it
    client.close()


def test_what_waits_is_sent_before_the_output_closes_and_the_peer_is_still_read(place: Place) -> None:
    place.transport.write(bytes(MUCH))
    place.transport.write(b"end")
    place.transport.loseWriteConnection()
    assert place.transport.has_unsent
    assert place.read_all() == MUCH + 3
    assert not place.transport.has_unsent
    place.client.sendall(b"late")
    place.client.close()
    place.run_until(lambda: place.served.ends)
    assert place.served.received == b"late"
    assert isinstance(place.served.ends[0], ConnectionDone)
    assert str(place.served.ends[0]) == "Connection was closed cleanly."


SIZES = [(7, 131_064, 1), (1, 0, 3), (MUCH, 5), (300_000, 1, 300_000), (1,) * 200]


@pytest.mark.parametrize("sizes", SIZES, ids=lambda sizes: f"{len(sizes)} pieces")
def test_pieces_are_sent_in_their_order_and_whole(place: Place, sizes: tuple[int, ...]) -> None:
    pieces = [bytes([number % 251]) * size for number, size in enumerate(sizes)] * 20
    place.transport.write_all(pieces)
    place.transport.write(b"end")
    place.transport.loseConnection()
    assert place.read_all() == sum(map(len, pieces)) + 3
    assert place.received == b"".join(pieces) + b"end"


def test_a_close_sends_what_waits(place: Place) -> None:
    place.transport.write(bytes(MUCH))
    place.transport.loseConnection()
    assert place.read_all() == MUCH
    assert [type(end) for end in place.served.ends] == [ConnectionDone]


def test_a_close_after_that_of_the_output_needs_no_event(place: Place) -> None:
    place.transport.loseWriteConnection()
    place.transport.loseConnection()
    assert place.loop.turn() == 0
    assert [type(end) for end in place.served.ends] == [ConnectionDone]


def test_the_producer_is_paused_above_the_limit_and_resumed_when_all_is_sent(place: Place) -> None:
    producer = Producer()
    place.transport.registerProducer(producer, True)
    place.transport.write(bytes(1000))
    assert producer.told == []
    place.transport.write(bytes(MUCH))
    assert producer.told == ["full"]

    def read() -> bool:
        with suppress(BlockingIOError):
            place.client.recv(1 << 20)
        return "empty" in producer.told

    place.run_until(read)
    assert producer.told == ["full", "empty"]
    assert not place.transport.has_unsent


def test_an_abort_resets_the_connection_once_and_drops_what_waits(place: Place) -> None:
    place.transport.write(bytes(MUCH))
    place.transport.abortConnection()
    place.transport.abortConnection()
    place.transport.write(b"after")
    assert place.served.ends == []
    assert place.loop.turn() == 0
    assert [type(end) for end in place.served.ends] == [ConnectionAborted]
    assert place.transport.fileno() == -1
    with pytest.raises(ConnectionResetError):
        place.read_all()


def test_a_broken_connection_is_lost_while_output_waits(place: Place) -> None:
    place.transport.pauseProducing()
    place.transport.write(bytes(MUCH))
    place.client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    place.client.close()
    place.run_until(lambda: place.served.ends)
    assert [type(end) for end in place.served.ends] == [ConnectionLost]


def test_nothing_is_read_while_it_is_paused(place: Place) -> None:
    place.transport.pauseProducing()
    place.client.sendall(b"hello")
    assert place.loop.turn() == 0
    assert place.served.received == b""
    place.transport.resumeProducing()
    place.run_until(lambda: place.served.received == b"hello")
    assert place.served.ends == []


def test_calls_after_the_end_have_no_effect(place: Place) -> None:
    place.transport.lost(CONNECTION_LOST)
    place.transport.write(b"more")
    place.transport.resumeProducing()
    place.transport.pauseProducing()
    place.transport.loseWriteConnection()
    place.transport.loseConnection()
    place.transport.unregisterProducer()
    place.transport.abortConnection()
    place.transport.lost(CONNECTION_DONE)
    assert place.loop.turn() == 0
    assert [type(end) for end in place.served.ends] == [ConnectionLost]


def test_it_sets_options_of_the_socket(place: Place) -> None:
    place.transport.socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    assert place.served.line.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
