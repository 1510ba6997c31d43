"""When a connection writes: once for all of a turn, or within the call, for what another process waits for."""

from typing import Any

import pytest
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport

from gateway_jetstream.client.conversation import NatsConversation
from gateway_jetstream.client.protocol import NatsConnection
from gateway_jetstream.codec.frames import Delivered


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
    """A transport that has ``written`` bytes, and those of them that the socket has ``taken``."""

    taken = 0

    def doWrite(self) -> None:  # noqa: N802 - Twisted's name
        """Hand everything to the socket."""
        self.taken = len(self.value())


class Place:
    """An open connection over a transport of its own."""

    def __init__(self, transport: Any) -> None:
        self.clock, self.transport = Clock(), transport
        conversation = NatsConversation("test", False, lambda info: {})
        self.connection = NatsConnection(
            self.clock,
            Owner(),
            "nats://one",
            conversation,
            lambda: None,
            handshake_timeout_s=5,
            ping_interval_s=60,
            most_output=1000,
        )
        self.connection.makeConnection(transport)
        self.connection.dataReceived(b'INFO {"max_payload":1048576}\r\nPONG\r\n')
        self.clock.advance(0)
        transport.clear()


@pytest.mark.parametrize("make", [StringTransport, SocketTransport])
def test_what_is_sent_in_a_turn_is_one_write_at_its_end(make: type[StringTransport]) -> None:
    place = Place(make())
    place.connection.send(b"one ")
    place.connection.send(b"two")
    assert place.transport.value() == b""
    place.clock.advance(0)
    assert place.transport.value() == b"one two"


def test_what_is_sent_at_once_is_in_the_socket_with_what_waited() -> None:
    place = Place(SocketTransport())
    place.connection.send(b"one ")
    place.connection.send(b"two", at_once=True)
    assert (place.transport.value(), place.transport.taken) == (b"one two", 7)
    place.clock.advance(0)
    assert place.transport.value() == b"one two"


def test_over_tls_what_is_sent_at_once_is_written_within_the_call() -> None:
    place = Place(StringTransport())
    place.connection.send(b"one", at_once=True)
    assert place.transport.value() == b"one"


def test_nothing_is_written_while_the_socket_is_full() -> None:
    place = Place(SocketTransport())
    place.connection.pauseProducing()
    place.connection.send(b"one", at_once=True)
    assert (place.transport.value(), place.transport.taken) == (b"", 0)
    place.connection.resumeProducing()
    place.clock.advance(0)
    assert place.transport.value() == b"one"
