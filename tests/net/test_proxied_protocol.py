"""A connection that waits for a PROXY header and is then passed to its protocol; no sockets, no clock."""

from typing import Any

from twisted.internet.protocol import Factory, Protocol
from twisted.internet.testing import StringTransport

from gateway.net.proxied import ProxiedFactory
from gateway.testing import FakeClock

HEADER = b"PROXY TCP4 192.0.2.7 198.51.100.1 56324 5672\r\n"


class Client(Protocol):
    """Records the addresses of its transport at ``connectionMade``, and its input."""

    pair: Any = None
    received = b""

    def connectionMade(self) -> None:
        transport: Any = self.transport
        peer, host = transport.getPeer(), transport.getHost()
        self.pair = ((peer.host, peer.port), (host.host, host.port))

    def dataReceived(self, data: bytes) -> None:
        self.received += data


class Connection:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.client = Client()
        factory = ProxiedFactory(Factory.forProtocol(lambda: self.client), self.clock, 10)  # type: ignore[arg-type]
        self.transport: Any = StringTransport()
        self.transport.protocol = factory.buildProtocol(None)
        self.transport.protocol.makeConnection(self.transport)

    def receive(self, data: bytes) -> None:
        """Deliver input as a transport does."""
        self.transport.protocol.dataReceived(data)


def test_the_protocol_starts_with_the_headers_addresses_and_the_bytes_behind_it() -> None:
    connection = Connection()
    connection.receive(HEADER[:10])
    assert connection.client.pair is None
    connection.receive(HEADER[10:] + b"first")
    connection.receive(b" second")
    assert connection.client.pair == (("192.0.2.7", 56324), ("198.51.100.1", 5672))
    assert connection.client.received == b"first second"


def test_a_proxy_without_a_header_is_disconnected_after_the_time_limit() -> None:
    connection = Connection()
    connection.receive(HEADER[:10])
    connection.clock.advance(9.9)
    assert not connection.transport.disconnected
    connection.clock.advance(0.2)
    assert connection.transport.disconnected


def test_the_time_limit_ends_with_the_header() -> None:
    connection = Connection()
    connection.receive(HEADER)
    connection.clock.advance(100)
    assert not connection.transport.disconnected


def test_a_wrong_header_ends_the_connection_at_once() -> None:
    connection = Connection()
    connection.receive(b"AMQP\0\0\x09\x01")
    assert connection.transport.disconnected
    assert connection.client.pair is None
