"""The tap of a recorded connection: passes calls between Twisted's transport and the protocol, and records the bytes.

Only connections that were opened while a recording ran have one; all others pay nothing. The tap is behind TLS and
the PROXY header, and in front of WebSocket.
"""

from typing import Any

from twisted.internet.error import ConnectionDone
from twisted.internet.interfaces import IAddress
from twisted.internet.protocol import Factory, Protocol, connectionDone
from twisted.python.failure import Failure

from gateway.net.listeners import plain_host
from gateway.recording.recorder import RecordedConnection, Recorder


class _TappedTransport:
    """A transport whose output is recorded. It has the attributes of the one below, but for its socket.

    Without a socket, a protocol reads and writes through the transport. ``transport`` is the one below.
    """

    def __init__(self, below: Any, connection: RecordedConnection) -> None:  # Any: TCP and TLS share no type
        self.transport = below
        self.is_closed_here = False
        self._connection = connection

    def __getattr__(self, name: str) -> Any:
        if name in ("socket", "_connection"):
            raise AttributeError(name)
        return getattr(self.transport, name)

    def write(self, data: bytes) -> None:
        """Send and record bytes."""
        self._connection.sent(data)
        self.transport.write(data)

    def writeSequence(self, pieces: list[bytes]) -> None:  # noqa: N802 - Twisted's name
        """Send and record several pieces."""
        self.write(b"".join(pieces))

    def loseConnection(self) -> None:
        """Close the connection after all output is sent."""
        self.is_closed_here = True
        self.transport.loseConnection()

    def abortConnection(self) -> None:  # noqa: N802 - Twisted's name
        """Close the connection at once."""
        self.is_closed_here = True
        self.transport.abortConnection()


class TapProtocol(Protocol):
    """Stands between a transport and the protocol that serves the connection."""

    def __init__(self, inner: Any, connection: RecordedConnection) -> None:
        self._inner = inner
        self._connection = connection

    def makeConnection(self, transport: Any) -> None:  # noqa: N802 - Twisted's name
        """Connect the protocol."""
        self.transport = transport
        self._tapped = _TappedTransport(transport, self._connection)
        self._inner.makeConnection(self._tapped)

    def dataReceived(self, data: bytes) -> None:
        """Record and handle bytes of the client."""
        self._connection.received(data)
        self._inner.dataReceived(data)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Record the end, and pass it on."""
        if self._tapped.is_closed_here:
            self._connection.closed("server")
        else:
            self._connection.closed("client" if isinstance(reason.value, ConnectionDone) else "broken")
        self._inner.connectionLost(reason)


class TapFactory(Factory):
    """Wraps the factory of a listener."""

    noisy = False

    def __init__(self, listener: str, wrapped: Any, recorder: Recorder) -> None:
        self._listener = listener
        self._wrapped = wrapped
        self._recorder = recorder

    def doStart(self) -> None:  # noqa: N802 - Twisted's name
        """Start the wrapped factory."""
        self._wrapped.doStart()

    def doStop(self) -> None:  # noqa: N802 - Twisted's name
        """Stop the wrapped factory."""
        self._wrapped.doStop()

    def buildProtocol(self, addr: IAddress | None) -> Any:
        """Return the protocol of a new connection, with a tap if it is recorded."""
        inner = self._wrapped.buildProtocol(addr)
        if inner is None or not self._recorder.is_on:
            return inner
        host, port = getattr(addr, "host", ""), getattr(addr, "port", 0)
        connection = self._recorder.opened(self._listener, f"{plain_host(host)}:{port}")
        return inner if connection is None else TapProtocol(inner, connection)
