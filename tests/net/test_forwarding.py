"""Clients of a follower reach the leader: bytes both ways with back pressure, the address, waiting for a leader."""

import socket
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.interfaces import IHalfCloseableProtocol
from twisted.internet.protocol import Factory, Protocol
from zope.interface import implementer  # type: ignore[import-untyped]  # it has no types

from gateway.kernel.errors import ProtocolViolation
from gateway.net.clock import ReactorClock
from gateway.net.forwarding.counts import ForwardingCounts
from gateway.net.forwarding.introduction import LONGEST, Introduction, encode_introduction, parse_introduction
from gateway.net.forwarding.passing import HOLD_S, ForwardingFactory
from gateway.net.forwarding.taking import TIMEOUT_S, ForwardedFactory
from gateway.net.proxy_header import encode, parse
from gateway.testing import FakeClock
from tests.jetstream.event_loop import EventLoop
from tests.net.forwarding_nodes import leader_at

SECRET = "0123456789abcdef" * 2
MEGABYTES = b"0123456789abcdef" * 2**17


@implementer(IHalfCloseableProtocol)
class Server(Protocol):
    """The protocol of the leader's listener: sends back what it gets, unless it ``is_silent``, then its end."""

    def __init__(self, cluster: "Cluster") -> None:
        self._cluster = cluster
        self.received = 0
        self.is_lost = False

    def connectionMade(self) -> None:
        self._cluster.servers.append(self)
        if self._cluster.is_silent:
            self.transport.pauseProducing()  # type: ignore[union-attr]

    def dataReceived(self, data: bytes) -> None:
        self.received += len(data)
        self.transport.write(data)  # type: ignore[union-attr]

    def readConnectionLost(self) -> None:  # noqa: N802 - Twisted's name
        self.transport.loseConnection()  # type: ignore[union-attr]

    def writeConnectionLost(self) -> None:  # noqa: N802 - Twisted's name
        pass

    def connectionLost(self, reason: object = None) -> None:
        self.is_lost = True


class Cluster:
    """A follower, and a leader that serves the listener ``amqp``, on loopback and one reactor."""

    def __init__(self) -> None:
        self.loop = EventLoop()
        self.clock = FakeClock()
        self.servers: list[Server] = []
        self.is_silent = False
        self.leads = True
        self.counts = ForwardingCounts()
        factory: Any = Factory.forProtocol(lambda: Server(self))  # type: ignore[arg-type]
        served = {"amqp": factory}
        taking = ForwardedFactory(SECRET, lambda cell: served if self.leads else {}, self.clock)
        self.leader: tuple[str, int] | None = self.listen(taking)
        self.follower = self.listen(self.forwarding())

    def forwarding(self, secret: str = SECRET, listener: str = "amqp") -> ForwardingFactory:
        return ForwardingFactory(
            listener, secret, lambda cell: leader_at(self.leader), self.loop.reactor, self.clock, self.counts
        )

    def listen(self, factory: Any) -> tuple[str, int]:
        port: int = self.loop.reactor.listenTCP(0, factory, interface="127.0.0.1").getHost().port
        return "127.0.0.1", port

    def client(self, address: tuple[str, int] | None = None) -> socket.socket:
        client = socket.create_connection(address or self.follower)
        client.setblocking(False)
        return client

    def send(self, client: socket.socket, data: bytes) -> None:
        view = memoryview(data)
        while view:
            try:
                view = view[client.send(view) :]
            except BlockingIOError:
                self.loop.turn()

    def read(self, client: socket.socket, size: int) -> bytes:
        """Read so many bytes, or up to the end."""
        found = bytearray()

        def is_done() -> bool:
            try:
                data = client.recv(65_536)
            except BlockingIOError:
                return False
            found.extend(data)
            return not data or len(found) >= size

        self.loop.until(is_done)
        return bytes(found)

    def close(self) -> None:
        self.loop.close()


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    cluster = Cluster()
    yield cluster
    cluster.close()


def test_bytes_pass_both_ways_and_the_protocol_sees_the_clients_address(cluster: Cluster) -> None:
    client = cluster.client()
    sent = 0
    answered = b""
    while sent < len(MEGABYTES):
        cluster.send(client, MEGABYTES[sent : sent + 65_536])
        sent += 65_536
        answered += cluster.read(client, 65_536)
    assert answered == MEGABYTES
    transport: Any = cluster.servers[0].transport
    assert (transport.getPeer().host, transport.getPeer().port) == client.getsockname()
    assert (transport.getHost().host, transport.getHost().port) == cluster.follower
    assert (cluster.counts.open, cluster.counts.received, cluster.counts.sent) == (1, len(MEGABYTES), len(MEGABYTES))
    client.close()


def test_a_client_is_not_read_while_the_leader_reads_nothing(cluster: Cluster) -> None:
    cluster.is_silent = True
    client = cluster.client()
    cluster.loop.until(lambda: cluster.servers)
    sent = 0
    for _ in range(600):
        try:
            sent += client.send(MEGABYTES[:65_536])
        except BlockingIOError:
            cluster.loop.turn()
    held = cluster.counts.received
    assert held < 16 * 2**20
    assert sent < 64 * 2**20
    transport: Any = cluster.servers[0].transport
    transport.resumeProducing()
    assert cluster.read(client, 65_536)
    client.close()


def test_the_end_of_each_side_ends_the_other(cluster: Cluster) -> None:
    first, second = cluster.client(), cluster.client()
    cluster.loop.until(lambda: len(cluster.servers) == 2)
    first.close()
    cluster.loop.until(lambda: any(server.is_lost for server in cluster.servers))
    (left,) = [server for server in cluster.servers if not server.is_lost]
    transport: Any = left.transport
    transport.write(b"last words")
    transport.loseConnection()
    assert cluster.read(second, 100) == b"last words"
    second.close()
    cluster.loop.until(lambda: cluster.counts.open == 0)
    assert cluster.counts.connections == 2


def test_a_client_waits_for_a_leader(cluster: Cluster) -> None:
    leader, cluster.leader = cluster.leader, None
    client = cluster.client()
    cluster.send(client, b"hello")
    for _ in range(3):
        cluster.loop.turn()
        cluster.clock.advance(0.25)
    assert not cluster.servers
    cluster.leader, cluster.leads = leader, False  # elected, but it does not serve yet
    for _ in range(8):
        cluster.clock.advance(0.25)
        cluster.loop.turn()
    assert not cluster.servers
    cluster.leads = True
    cluster.clock.advance(0.25)
    assert cluster.read(client, 5) == b"hello"


@pytest.mark.parametrize(
    ("secret", "listener"), [("f" * 32, "amqp"), (SECRET, "mqtt")], ids=["another secret", "another listener"]
)
def test_a_client_that_no_leader_takes_is_closed_after_a_while(cluster: Cluster, secret: str, listener: str) -> None:
    client = cluster.client(cluster.listen(cluster.forwarding(secret, listener)))
    waited_s = 0.0
    while cluster.counts.open or not cluster.counts.connections:
        assert waited_s < HOLD_S + 1
        cluster.loop.turn()
        cluster.clock.advance(0.05)
        waited_s += 0.05 if cluster.counts.connections else 0
    assert waited_s > HOLD_S - 1
    with pytest.raises(ConnectionResetError):
        client.recv(1)
    assert not cluster.servers


class Refusal(Protocol):
    """Answers the first bytes of a client with a reason, and closes the connection."""

    def dataReceived(self, data: bytes) -> None:
        self.transport.write(b"no leader for " + data)  # type: ignore[union-attr]
        self.transport.loseConnection()  # type: ignore[union-attr]


@pytest.mark.parametrize(("fault", "held_s"), [("cut off", 0.0), ("", HOLD_S - 1)], ids=["at once", "after a while"])
def test_a_client_for_whom_there_is_no_leader_can_be_refused_with_a_reason(
    cluster: Cluster, fault: str, held_s: float
) -> None:
    cluster.leader = None
    factory = ForwardingFactory(
        "amqp",
        SECRET,
        lambda cell: leader_at(cluster.leader),
        cluster.loop.reactor,
        cluster.clock,
        cluster.counts,
        refusing=Factory.forProtocol(Refusal),  # type: ignore[arg-type]  # it takes any factory
        fault=lambda: fault,
    )
    client = cluster.client(cluster.listen(factory))
    cluster.send(client, b"me")
    cluster.loop.until(lambda: cluster.counts.open)
    cluster.clock.advance(held_s)
    assert cluster.counts.open == 1
    cluster.clock.advance(1.25)
    assert cluster.read(client, 100) == b"no leader for me"
    assert (cluster.counts.open, cluster.counts.waiting, cluster.counts.expired) == (0, 0, 1)


def test_a_node_that_says_nothing_is_disconnected(cluster: Cluster) -> None:
    assert cluster.leader is not None
    client = cluster.client(cluster.leader)
    cluster.send(client, b"GATEWAY-FORWARD/1 ")
    for _ in range(5):
        cluster.loop.turn()
    cluster.clock.advance(TIMEOUT_S)
    with pytest.raises(ConnectionResetError):
        cluster.read(client, 1)


def test_the_clock_of_a_node_can_be_the_reactors(cluster: Cluster) -> None:
    clock = ReactorClock(cluster.loop.reactor, lambda: None)
    leader, cluster.leader = cluster.leader, None
    forwarding = ForwardingFactory(
        "amqp", SECRET, lambda cell: leader_at(cluster.leader), cluster.loop.reactor, clock, cluster.counts
    )
    client = cluster.client(cluster.listen(forwarding))
    cluster.loop.until(lambda: cluster.counts.open)
    cluster.leader = leader
    cluster.send(client, b"hello")
    assert cluster.read(client, 5) == b"hello"


def test_a_client_that_sends_its_end_early_is_served(cluster: Cluster) -> None:
    client = cluster.client()
    client.sendall(b"request")
    client.shutdown(socket.SHUT_WR)
    assert cluster.read(client, 7) == b"request"
    client.close()


@pytest.mark.parametrize("half", [False, True])
def test_a_held_client_that_hangs_up_is_noticed_at_once(cluster: Cluster, half: bool) -> None:
    cluster.leader = None
    clients = [cluster.client() for _ in range(3)]
    cluster.loop.until(lambda: cluster.counts.waiting == 3)
    cluster.send(clients[1], b"sent before")
    if half:
        clients[1].shutdown(socket.SHUT_WR)
    else:
        clients[1].close()
    cluster.loop.until(lambda: cluster.counts.waiting == 2)  # the fake clock stands still: nothing polls
    assert cluster.counts.open == 2
    for client in clients:
        client.close()
    cluster.loop.until(lambda: cluster.counts.waiting == 0)
    assert cluster.counts.expired == 0


@given(st.binary(max_size=300), st.integers(0, 300), st.text(max_size=60).filter(str.isprintable))
def test_any_bytes_are_an_introduction_or_refused(data: bytes, cut: int, node: str) -> None:
    line = encode_introduction(SECRET, "web_mqtt", node)
    assert parse_introduction(line + data, SECRET) == Introduction("web_mqtt", node, len(line))
    assert parse_introduction(line[: min(cut, len(line) - 1)], SECRET) is None
    try:
        found = parse_introduction(data, SECRET)
    except ProtocolViolation:
        return
    assert found is None
    assert len(data) < LONGEST


@pytest.mark.parametrize("host", ["192.0.2.7", "2001:db8::7"])
@pytest.mark.parametrize("other", ["198.51.100.1", "2001:db8::1"])
def test_a_proxy_header_is_read_as_it_was_written(host: str, other: str) -> None:
    header = encode((host, 56_324), (other, 5672))
    found = parse(header + b"rest")
    assert found is not None
    assert found.size == len(header)
    is_wide = ":" in host + other
    assert found.source == (f"::ffff:{host}" if is_wide and ":" not in host else host, 56_324) or (
        is_wide and found.source is not None and found.source[1] == 56_324
    )
