"""Connections to a broker that still starts: each is told so in its protocol's words, and closed."""

from collections.abc import Callable
from typing import Any, Final

from twisted.internet.interfaces import IAddress
from twisted.internet.protocol import Factory, Protocol, connectionDone
from twisted.python.failure import Failure

from gateway.kernel.clock import Clock

#: How long a client may take to say what the answer depends on, in seconds.
_TIMEOUT_S: Final = 10.0

#: How long the connection stays open behind the answer, in seconds: closed with input unread, the answer may be lost.
_LINGER_S: Final = 0.5

#: Bytes that are read of a client before its connection is cut.
_MOST_BYTES: Final = 64 * 2**10

#: Connections of one listener at a time; the one that is there longest makes room.
_MOST_CONNECTIONS: Final = 1000

Refusal = Callable[[bytes], bytes | None]
"""From all bytes that came so far to the answer; ``None`` for more of them, ``b""`` to close without a word."""


class NotReady(Protocol):
    """One connection: collects the first bytes of the client, answers them and closes."""

    def __init__(self, factory: "NotReadyFactory") -> None:
        self._factory = factory
        self._data = b""
        self._is_answered = False

    def connectionMade(self) -> None:
        """A client connected."""
        self._deadline = self._factory.clock.call_later(_TIMEOUT_S, self.abort)
        self._factory.began(self)

    def dataReceived(self, data: bytes) -> None:
        """Bytes came. Behind the answer they are dropped."""
        if self._is_answered:
            return
        self._data += data
        answer = self._factory.refusal(self._data)
        if answer is not None:
            self._answer(answer)
        elif len(self._data) > _MOST_BYTES:
            self.abort()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """The connection ended."""
        self._deadline.cancel()
        self._factory.ended(self)

    def abort(self) -> None:
        """End the connection at once."""
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
    """Makes the connections of one listener while the broker starts. ``clock`` must not be held."""

    noisy = False

    def __init__(self, refusal: Refusal, clock: Clock) -> None:
        self.refusal = refusal
        self.clock = clock
        self._connections: dict[NotReady, None] = {}

    def buildProtocol(self, addr: IAddress | None) -> NotReady:
        """Return what answers a new connection."""
        return NotReady(self)

    def began(self, connection: NotReady) -> None:
        """A connection is there; with too many of them the oldest is cut."""
        self._connections[connection] = None
        if len(self._connections) > _MOST_CONNECTIONS:
            oldest = next(iter(self._connections))
            self.ended(oldest)
            oldest.abort()

    def ended(self, connection: NotReady) -> None:
        """A connection is gone."""
        self._connections.pop(connection, None)
