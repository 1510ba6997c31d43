"""A follower and a leader on one reactor over loopback, with clients that are plain sockets."""

import select
import socket
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from twisted.internet.protocol import Factory, Protocol, connectionDone
from twisted.python.failure import Failure

from gateway.net.clock import ReactorClock
from gateway.net.forwarding.counts import ForwardingCounts
from gateway.net.forwarding.passing import ForwardingFactory
from gateway.net.forwarding.routing import FIRST_CELL, Leader
from gateway.net.forwarding.taking import ForwardedFactory
from tests.jetstream.event_loop import EventLoop

SECRET = "0123456789abcdef" * 2


def leader_at(
    address: tuple[str, int] | None, epoch: int = 0, fingerprint: str = "", cell: int = FIRST_CELL
) -> Leader | None:
    """Return the leader at an address, if there is one."""
    return None if address is None else Leader(address, epoch, fingerprint, cell)


class Served(Protocol):
    """The leader's side of a client: keeps what it gets. ``lost`` says why it ended."""

    def __init__(self) -> None:
        self.received = bytearray()
        self.most_buffered = 0
        self.peer = ("", 0)
        self.lost: Failure | None = None

    @property
    def line(self) -> Any:  # Any: Twisted's interfaces are not types
        return self.transport

    def connectionMade(self) -> None:
        peer = self.line.getPeer()
        self.peer = (peer.host, peer.port)

    def dataReceived(self, data: bytes) -> None:
        self.received += data

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self.lost = reason


class ServedFactory(Factory):
    """The factory of a listener; ``clients`` are those that it served."""

    noisy = False

    def __init__(self) -> None:
        self.clients: list[Served] = []

    def buildProtocol(self, addr: object) -> Served:
        self.clients.append(Served())
        return self.clients[-1]


class ForwardingNodes:
    """A leader, and a follower with a listener ``amqp``. ``leads`` says whether the follower knows the leader."""

    def __init__(self) -> None:
        self.loop = EventLoop()
        self.bound: dict[int, Any] = {}
        self.clock = ReactorClock(self.loop.reactor, lambda: None)
        self.listener = ServedFactory()
        self.served: Mapping[str, Any] = {"amqp": self.listener}
        self.leader = ForwardedFactory(SECRET, lambda cell: self.served, self.clock)
        self.internal = self.listen(self.leader)
        self.address: tuple[str, int] | None = ("127.0.0.1", self.internal)
        self.counts = ForwardingCounts()
        self.follower = ForwardingFactory(
            "amqp", SECRET, lambda cell: leader_at(self.address), self.loop.reactor, self.clock, self.counts
        )
        self.port = self.listen(self.follower)
        self._sockets: list[socket.socket] = []

    def listen(self, factory: Factory, host: str = "127.0.0.1") -> int:
        bound = self.loop.reactor.listenTCP(0, factory, 1024, host)
        port: int = bound.getHost().port
        self.bound[port] = bound
        return port

    def connect(self, port: int | None = None, *, buffer: int = 0) -> socket.socket:
        """Return a new client; with ``buffer`` its system buffers are that small."""
        client = socket.socket()
        if buffer:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, buffer)
        client.connect(("127.0.0.1", self.port if port is None else port))
        client.setblocking(False)
        self._sockets.append(client)
        return client

    def linked(self, *, buffer: int = 0) -> tuple[socket.socket, Served]:
        """Return a client that the leader serves, and its side there."""
        before = len(self.follower.linked)
        client = self.connect(buffer=buffer)
        self.until(lambda: len(self.follower.linked) > before)
        return client, self.listener.clients[-1]

    def until(self, condition: Callable[[], object], timeout_s: float = 10.0) -> None:
        self.loop.until(condition, timeout_s)

    def received(self, client: socket.socket) -> Iterator[bytes]:
        """Yield what a client receives, until the other side ends; ``b""`` while there is nothing."""
        while True:
            self.loop.turn()
            if not select.select([client], [], [], 0)[0]:
                yield b""
                continue
            data = client.recv(65536)
            if not data:
                return
            yield data

    def receive(self, client: socket.socket, size: int) -> bytes:
        """Return the next bytes of a client."""
        data = bytearray()
        for piece in self.received(client):
            data += piece
            if len(data) >= size:
                break
        return bytes(data)

    def receive_all(self, client: socket.socket) -> bytes:
        """Return everything up to the end."""
        return b"".join(self.received(client))

    def close(self) -> None:
        for client in self._sockets:
            client.close()
        self.loop.close()
