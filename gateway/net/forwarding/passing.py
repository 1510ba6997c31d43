"""A follower's side: passes the bytes of its clients to the leader, and back.

Both transports are producers of each other, so a slow reader on one side stops the reading on the other, and no more
than the buffers of the two sockets is in memory.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from twisted.internet.interfaces import IAddress
from twisted.internet.protocol import ClientFactory, Factory, Protocol, connectionDone
from twisted.python.failure import Failure

from gateway.kernel.clock import Clock, Timer
from gateway.net.forwarding.introduction import TAKEN, encode_introduction
from gateway.net.proxy_header import encode

Leader: TypeAlias = "Callable[[], tuple[str, int] | None]"
"""Returns the address at which the leader takes connections; ``None`` while there is no leader."""

#: How long a client is held while there is no leader, in seconds: longer than a usual election.
HOLD_S: Final = 15.0

#: The pause between two attempts to reach the leader, in seconds.
_RETRY_S: Final = 0.25

_CONNECT_S: Final = 3.0


@dataclass(slots=True)
class ForwardingCounts:
    """The connections that are open and those so far, and the bytes of clients and of the leader."""

    open: int = 0
    connections: int = 0
    received: int = 0
    sent: int = 0


class ForwardedClient(Protocol):
    """The connection of one client. It is read once the leader has taken it."""

    def __init__(self, factory: "ForwardingFactory") -> None:
        self._factory = factory
        self._leader: LeaderConnection | None = None
        self._timer: Timer | None = None
        self._is_lost = False

    def connectionMade(self) -> None:
        """Hold the client, and connect to the leader."""
        transport: Any = self.transport
        transport.setTcpNoDelay(True)
        transport.setTcpKeepAlive(True)
        transport.pauseProducing()
        counts = self._factory.counts
        counts.open += 1
        counts.connections += 1
        self._gives_up_s = self._factory.clock.monotonic_s() + HOLD_S
        self._connect()

    def _connect(self) -> None:
        self._timer = None
        if self._is_lost:
            return
        leader = self._factory.leader()
        if leader is None:
            self.leader_failed()
        else:
            self._factory.connect(leader, LeaderFactory(self, self._introduction()))

    def _introduction(self) -> bytes:
        transport: Any = self.transport
        source, destination = transport.getPeer(), transport.getHost()
        header = encode((source.host, source.port), (destination.host, destination.port))
        return encode_introduction(self._factory.secret, self._factory.listener) + header

    def leader_failed(self) -> None:
        """Try again soon, or give up: the leader could not be reached."""
        transport: Any = self.transport
        if self._is_lost:
            return
        if self._factory.clock.monotonic_s() >= self._gives_up_s:
            transport.abortConnection()
        elif self._timer is None:
            self._timer = self._factory.clock.call_later(_RETRY_S, self._connect)

    def leader_connected(self, leader: "LeaderConnection") -> None:
        """Pass bytes in both directions from now on."""
        if self._is_lost:
            leader.end()
            return
        self._leader = leader
        transport: Any = self.transport
        transport.registerProducer(leader.transport, True)
        leader.transport.registerProducer(transport, True)
        transport.resumeProducing()

    def leader_sent(self, data: bytes) -> None:
        """Pass the leader's bytes on."""
        transport: Any = self.transport
        self._factory.counts.sent += len(data)
        transport.write(data)

    def leader_lost(self) -> None:
        """Close after what the leader has sent."""
        transport: Any = self.transport
        self._leader = None
        if not self._is_lost:
            transport.unregisterProducer()
            transport.loseConnection()

    def dataReceived(self, data: bytes) -> None:
        """Pass the client's bytes on."""
        if self._leader is not None:
            self._factory.counts.received += len(data)
            self._leader.transport.write(data)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Close the connection to the leader after what the client has sent."""
        self._is_lost = True
        self._factory.counts.open -= 1
        if self._timer is not None:
            self._timer.cancel()
        leader, self._leader = self._leader, None
        if leader is not None:
            leader.end()


class LeaderConnection(Protocol):
    """The connection to the leader for one client."""

    transport: Any  # Twisted's transports share no type with all that is used here

    def __init__(self, client: ForwardedClient, introduction: bytes) -> None:
        self._client: ForwardedClient | None = client
        self._introduction = introduction
        self._is_taken = False

    def connectionMade(self) -> None:
        """Introduce the client."""
        self.transport.setTcpNoDelay(True)
        self.transport.setTcpKeepAlive(True)
        self.transport.write(self._introduction)

    def dataReceived(self, data: bytes) -> None:
        """Pass bytes to the client; the first one says that the leader has taken it."""
        if self._client is None:
            return
        if not self._is_taken:
            if data[:1] != TAKEN:
                self.transport.abortConnection()
                return
            self._is_taken = True
            self._client.leader_connected(self)
            data = data[1:]
        if data and self._client is not None:
            self._client.leader_sent(data)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Tell the client's side; a node that does not lead, or not yet, closes before it has taken the client."""
        client, self._client = self._client, None
        if client is None:
            return
        if self._is_taken:
            client.leader_lost()
        else:
            client.leader_failed()

    def end(self) -> None:
        """Close after what the client has sent: the client is gone."""
        self._client = None
        self.transport.unregisterProducer()
        self.transport.loseConnection()


class LeaderFactory(ClientFactory):
    """Makes the connection to the leader for one client."""

    noisy = False

    def __init__(self, client: ForwardedClient, introduction: bytes) -> None:
        self._client = client
        self._introduction = introduction

    def buildProtocol(self, addr: IAddress | None) -> LeaderConnection:
        """Return the connection."""
        return LeaderConnection(self._client, self._introduction)

    def clientConnectionFailed(self, connector: Any, reason: Failure) -> None:
        """Try again: the leader may have ended."""
        self._client.leader_failed()


class ForwardingFactory(Factory):
    """Serves the port of one ``listener`` by the ``leader``, whom the ``secret`` convinces."""

    noisy = False

    def __init__(
        self, listener: str, secret: str, leader: Leader, reactor: Any, clock: Clock, counts: ForwardingCounts
    ) -> None:
        self.listener = listener
        self.secret = secret
        self.leader = leader
        self.clock = clock
        self.counts = counts
        self._reactor = reactor

    def buildProtocol(self, addr: IAddress | None) -> ForwardedClient:
        """Return the connection of a new client."""
        return ForwardedClient(self)

    def connect(self, address: tuple[str, int], factory: LeaderFactory) -> None:
        """Connect to an address of the leader."""
        host, port = address
        self._reactor.connectTCP(host, port, factory, _CONNECT_S)
