"""When a connection writes: once for all of a turn, or within the call, for what another process waits for."""

from typing import Any

import pytest
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport

from gateway_jetstream.client.conversation import NatsConversation
from gateway_jetstream.client.output import NatsOutput
from gateway_jetstream.client.protocol import NatsConnection
from gateway_jetstream.codec.frames import Delivered
from gateway_jetstream.errors import TooMuch


class Owner:
    """An owner that needs no reports."""

    def connection_opened(self, connection: NatsConnection) -> None:
        """Do nothing."""

    def connection_delivered(self, message: Delivered) -> None:
        """Do nothing."""

    def connection_warned(self, connection: NatsConnection, text: str) -> None:
        """Do nothing."""

    def connection_ended(self, connection: NatsConnection, reason: str) -> None:
        """Do nothing."""


class SocketTransport(StringTransport):
    """A transport that says how much of its buffer the socket has ``taken``."""

    taken = 0

    def doWrite(self) -> None:  # noqa: N802 - Twisted's name
        """Hand everything to the socket."""
        self.taken = len(self.value())


DESCRIPTOR = 7


class PlainTransport(StringTransport):
    """A transport of a plain socket. ``write_rest`` sends what it was asked to write."""

    socket = object()
    is_aborted = False

    def fileno(self) -> int:
        """Return the descriptor."""
        return DESCRIPTOR

    def write_rest(self) -> bytes:
        """Return what the transport sends to the socket; then its buffer is empty."""
        rest = self.value()
        self.clear()
        assert not self.streaming, "a push producer learns nothing of a buffer that was never full"
        self.producer.resumeProducing()
        return rest

    def abortConnection(self) -> None:  # noqa: N802 - Twisted's name
        """Note that the connection is given up."""
        self.is_aborted = True


class Socket:
    """A plain socket: the bytes that it ``got``. It has ``room`` for so many; without room a write would block."""

    def __init__(self) -> None:
        self.got = b""
        self.room = 1000
        self.error: OSError | None = None

    def write(self, descriptor: int, data: bytes) -> int:
        """Take what there is room for."""
        assert descriptor == DESCRIPTOR
        if self.error is not None:
            raise self.error
        if not self.room:
            raise BlockingIOError
        sent = min(self.room, len(data))
        self.got += data[:sent]
        self.room -= sent
        return sent


class Place:
    """An open connection over a transport of its own."""

    def __init__(self, transport: Any) -> None:
        self.clock, self.transport, self.socket = Clock(), transport, Socket()
        conversation = NatsConversation("test", False, lambda info: {})
        self.output = NatsOutput(self.clock, "nats://one", conversation, 1000, self.socket.write)
        self.connection = NatsConnection(
            self.clock,
            Owner(),
            "nats://one",
            conversation,
            self.output,
            lambda: None,
            handshake_timeout_s=5,
            ping_interval_s=60,
        )
        self.connection.makeConnection(transport)
        self.connection.dataReceived(b'INFO {"max_payload":1048576}\r\n')
        self.clock.advance(0)
        self.connection.dataReceived(b"PONG\r\n")
        transport.clear()


@pytest.mark.parametrize("make", [StringTransport, SocketTransport])
def test_what_is_sent_in_a_turn_is_one_write_at_its_end(make: type[StringTransport]) -> None:
    place = Place(make())
    place.output.send(b"one ", at_once=False)
    place.output.send(b"two", at_once=False)
    assert place.transport.value() == b""
    place.clock.advance(0)
    assert place.transport.value() == b"one two"


def test_what_is_sent_at_once_is_in_the_socket_with_what_waited() -> None:
    place = Place(SocketTransport())
    place.output.send(b"one ", at_once=False)
    place.output.send(b"two", at_once=True)
    assert (place.transport.value(), place.transport.taken) == (b"one two", 7)
    place.clock.advance(0)
    assert place.transport.value() == b"one two"


def test_over_tls_what_is_sent_at_once_is_written_within_the_call() -> None:
    place = Place(StringTransport())
    place.output.send(b"one", at_once=True)
    assert place.transport.value() == b"one"


def test_nothing_is_written_while_the_socket_is_full() -> None:
    place = Place(SocketTransport())
    place.output.pauseProducing()
    place.output.send(b"one", at_once=True)
    assert (place.transport.value(), place.transport.taken) == (b"", 0)
    place.output.resumeProducing()
    place.clock.advance(0)
    assert place.transport.value() == b"one"


def test_a_plain_socket_is_written_to_directly() -> None:
    place = Place(PlainTransport())
    place.output.send(b"one ", at_once=False)
    assert place.socket.got == b""
    place.output.send(b"two", at_once=True)
    assert place.socket.got == b"one two"
    place.output.send(b" three", at_once=False)
    place.clock.advance(0)
    assert (place.socket.got, place.transport.value()) == (b"one two three", b"")


@pytest.mark.parametrize("room", [0, 2])
def test_what_a_plain_socket_does_not_take_comes_before_what_is_sent_later(room: int) -> None:
    place = Place(PlainTransport())
    place.socket.room = room
    place.output.send(b"one ", at_once=True)
    place.socket.room = 1000
    place.output.send(b"two", at_once=True)
    place.clock.advance(0)
    assert place.socket.got == b"one "[:room], "the second one overtook the rest of the first one"
    received = place.socket.got + place.transport.write_rest()
    place.clock.advance(0)
    assert received + place.socket.got[room:] == b"one two"


def test_what_waits_for_a_full_socket_is_bounded() -> None:
    place = Place(PlainTransport())
    place.socket.room = 0
    place.output.send(bytes(900), at_once=True)
    place.output.send(bytes(900), at_once=True)
    with pytest.raises(TooMuch, match="more than 1000 bytes wait"):
        place.output.send(bytes(200), at_once=True)


def test_a_broken_plain_socket_ends_the_connection() -> None:
    place = Place(PlainTransport())
    place.socket.error = ConnectionResetError()
    place.output.send(b"one", at_once=True)
    assert place.transport.is_aborted


def test_after_the_end_the_descriptor_is_not_used_any_more() -> None:
    place = Place(PlainTransport())
    place.output.send(b"one", at_once=False)
    place.connection.close("for the test")
    place.output.send(b"two", at_once=True)
    place.output.resumeProducing()
    place.clock.advance(0)
    assert (place.socket.got, place.transport.value()) == (b"", b"")


def test_a_connection_that_is_left_sends_everything_behind_what_the_socket_did_not_take() -> None:
    place = Place(PlainTransport())
    place.socket.room = 2
    place.output.send(b"one ", at_once=True)
    place.output.send(b"two", at_once=False)
    place.connection.leave()
    assert (place.socket.got, place.transport.value()) == (b"on", b"e two")
    assert place.transport.producer is None
