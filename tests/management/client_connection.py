"""A client's connection to the site, byte by byte."""

from base64 import b64encode
from typing import Any, Final

from twisted.internet.address import IPv4Address
from twisted.internet.error import ConnectionDone
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure

from tests.management.console import Answer, Console, parsed

LOGIN: Final = f"Authorization: Basic {b64encode(b'guest:guest').decode()}"
WRONG_LOGIN: Final = f"Authorization: Basic {b64encode(b'guest:wrong').decode()}"


class ClientConnection:
    """A client's connection. ``own_host`` is the server address it is connected to."""

    def __init__(self, console: Console, own_host: str = "192.0.2.7", peer_host: str = "127.0.0.1") -> None:
        self.console = console
        self.transport: Any = StringTransport(  # type: ignore[no-untyped-call]  # Twisted's
            hostAddress=IPv4Address("TCP", own_host, 15672), peerAddress=IPv4Address("TCP", peer_host, 50_000)
        )
        self.protocol: Any = console.site.buildProtocol(None)
        self.protocol.makeConnection(self.transport)

    def send(self, data: bytes) -> None:
        """Send bytes, unless the server has paused reading."""
        self.protocol.dataReceived(data)

    def ask(self, first: str, *lines: str, body: bytes = b"") -> None:
        """Send a request; a body is announced unless a header declares its length or encoding."""
        head = [f"{first} HTTP/1.1", "Host: 192.0.2.7:15672", *lines]
        if body and not any(line.startswith("Content-Length") for line in lines):
            head.append(f"Content-Length: {len(body)}")
        self.send("\r\n".join(head).encode() + b"\r\n\r\n" + body)

    def wait(self, seconds: float = 0.5) -> None:
        """Advance the clock in short turns."""
        for _ in range(max(1, int(seconds / 0.25))):
            self.console.clock.advance(0.25)
            self.console.gateway.settle()

    def turn(self) -> None:
        """Run one turn: the calls due now, without those that they schedule."""
        clock: Any = self.console.clock
        for call in [call for call in clock.calls if call.getTime() <= clock.seconds()]:
            if call in clock.calls:
                clock.calls.remove(call)
                call.called = 1
                call.func(*call.args, **call.kw)

    @property
    def received(self) -> bytes:
        """The bytes received."""
        return bytes(self.transport.value())

    @property
    def answer(self) -> Answer:
        """The first response."""
        return parsed(self.received)

    @property
    def is_closed(self) -> bool:
        """Whether the broker has closed the connection or is closing it."""
        return bool(self.transport.disconnecting or self.transport.disconnected)

    def hang_up(self) -> None:
        """Close the connection."""
        self.protocol.connectionLost(Failure(ConnectionDone()))
