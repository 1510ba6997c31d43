"""Listeners while the broker starts: each connection receives a refusal in its protocol and is closed."""

from collections.abc import Callable
from typing import Any, Final

from twisted.internet.interfaces import IAddress
from twisted.internet.protocol import Factory, Protocol, connectionDone
from twisted.python.failure import Failure

from gateway.kernel.clock import Clock

#: Time limit for the bytes of the client on which the answer depends, in seconds.
_TIMEOUT_S: Final = 10.0

#: Seconds the connection stays open after the answer; if it were closed with unread input, the answer might be lost.
_LINGER_S: Final = 0.5

#: Bytes read from a client before its connection is closed.
_MOST_BYTES: Final = 64 * 2**10

#: Connections of one listener at a time; beyond that the oldest one is closed.
_MOST_CONNECTIONS: Final = 1000

Refusal = Callable[[bytes], bytes | None]
"""Returns the answer to the bytes received so far; ``None`` to wait for more, ``b""`` to close without an answer."""


class NotReady(Protocol):
    """One connection: collects the first bytes of the client, answers them and closes."""

    def __init__(self, factory: "NotReadyFactory") -> None:
        self._factory = factory
        self._data = b""
        self._is_answered = False

    def connectionMade(self) -> None:
        """Start the time limit."""
        self._deadline = self._factory.clock.call_later(_TIMEOUT_S, self.abort)
        self._factory.began(self)

    def dataReceived(self, data: bytes) -> None:
        """Collect the bytes and answer them. Bytes after the answer are dropped."""
        if self._is_answered:
            return
        self._data += data
        answer = self._factory.refusal(self._data)
        if answer is not None:
            self._answer(answer)
        elif len(self._data) > _MOST_BYTES:
            self.abort()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Unregister the connection."""
        self._deadline.cancel()
        self._factory.ended(self)

    def abort(self) -> None:
        """Close the connection at once."""
        transport: Any = self.transport
        transport.abortConnection()

    def _answer(self, answer: bytes) -> None:
        transport: Any = self.transport
        self._is_answered = True
        self._deadline.cancel()
        if answer:
            transport.write(answer)
            self._deadline = self._factory.clock.call_later(_LINGER_S, transport.loseConnection)
        else:
            transport.loseConnection()


class NotReadyFactory(Factory):
    """Creates the connections of one listener while the broker starts. ``clock`` must not be held."""

    noisy = False

    def __init__(self, refusal: Refusal, clock: Clock) -> None:
        self.refusal = refusal
        self.clock = clock
        self._connections: dict[NotReady, None] = {}

    def buildProtocol(self, addr: IAddress | None) -> NotReady:
        """Return the protocol of a new connection."""
        return NotReady(self)

    def began(self, connection: NotReady) -> None:
        """Register a connection; if there are too many, close the oldest."""
        self._connections[connection] = None
        if len(self._connections) > _MOST_CONNECTIONS:
            oldest = next(iter(self._connections))
            self.ended(oldest)
            oldest.abort()

    def ended(self, connection: NotReady) -> None:
        """Unregister a connection."""
        self._connections.pop(connection, None)
