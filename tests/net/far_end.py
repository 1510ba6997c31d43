"""Connections of the servers over a socket that does not exist, made and lost as Twisted's transports do it."""

from collections.abc import Iterable
from typing import Any, TypeVar

from twisted.internet.address import IPv4Address
from twisted.internet.error import ConnectionDone
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure

from gateway.net.peer import PeerProtocol

S = TypeVar("S", bound=PeerProtocol)


class FarEnd(StringTransport):
    """The interface of Twisted's transports that ``SocketWriter`` uses, over a socket that does not exist."""

    aborted = False

    def setTcpNoDelay(self, enabled: bool) -> None:  # noqa: N802 - Twisted's name
        assert enabled

    def abortConnection(self) -> None:  # noqa: N802 - Twisted's name
        self.aborted = True


def connect(make: type[S], gateway: Any, sent: Iterable[bytes] = (), *, settles: bool = True) -> S:  # any harness
    """Return a server of this class whose client has sent the bytes; the transport then has no producer, as when lost.

    With ``settles`` a turn ends after each piece.
    """
    server: Any = make
    server = server(gateway.settings, gateway.turn)
    far_end = FarEnd(peerAddress=IPv4Address("TCP", "127.0.0.1", 50_000))
    server.makeConnection(far_end)
    for data in sent:
        server.dataReceived(data)
        if settles:
            gateway.settle()
    far_end.producer = None  # a real transport drops it
    return server  # type: ignore[no-any-return]


def lose(server: PeerProtocol, gateway: Any) -> None:
    """Lose the connection of a server; a tick that was already due comes after it."""
    server.connectionLost(Failure(ConnectionDone()))
    server.tick()
    gateway.settle()


def connect_and_lose(make: type[PeerProtocol], gateway: Any, sent: Iterable[bytes], *, settles: bool = True) -> None:
    """Connect, send the bytes, and lose the connection."""
    lose(connect(make, gateway, sent, settles=settles), gateway)
