"""``PeerProtocol`` with a machine that echoes its input; no sockets, time in ticks."""

from typing import Any

import pytest
from twisted.internet.testing import StringTransport

from gateway.kernel.alarms import Resource
from gateway.kernel.broker.connections import TICKS_PER_S
from gateway.kernel.journal.disk_backlog import BACKLOG_LIMIT, FAR_BEHIND_LIMIT
from gateway.kernel.messages.message import Message
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.logs import StructuredLog
from gateway.net.machine import Driver, Machine, Phase
from gateway.net.outbox import FLOOD, HIGH_WATER, Outbox
from gateway.net.peer import MOST_RESTED, PeerProtocol
from gateway.testing.broker import header_of
from tests.protocols.amqp.dialogue import Gateway

LOGIN_TIMEOUT_S = 3


#: Its doubles derive from compiled classes.
pytestmark = pytest.mark.source


class EchoMachine(Machine):
    """A machine that echoes its input. ``break`` raises, ``bye`` closes, ``publish`` makes it a publisher.

    ``work 3`` takes three turns, and is echoed at the end.
    """

    def __init__(self, driver: Driver, participant: Any) -> None:
        self.driver = driver
        self.outbox = Outbox(participant)
        self.has_published = False
        self.is_held = False
        self.is_busy = False
        self.left = 0
        self.expiry_s = 0.0
        self.way = Phase.ENTERING
        self.events: list[str] = []
        self.packet_size = 0

    @property
    def awaited(self) -> int:
        return self.packet_size

    @property
    def phase(self) -> Phase:
        return self.way

    @property
    def vhost(self) -> VirtualHost | None:
        return None

    @property
    def user_name(self) -> str:
        return "polly"

    @property
    def has_unsettled(self) -> bool:
        return False

    @property
    def expires_at_s(self) -> float:
        return self.expiry_s

    def receive(self, data: bytes) -> None:
        if data == b"break":
            raise RuntimeError("broken")
        if data == b"publish":
            self.has_published = True
            self.driver.publishing()
        elif data.startswith(b"work ") or self.left:
            self.left = int(data[5:]) if data else self.left - 1
            self.is_held = self.left > 0
            if not self.is_held:
                self.outbox.write(b"done")
        elif data == b"bye":
            self.way = Phase.LEAVING
            self.outbox.write(b"bye")
            self.driver.hang_up()
        else:
            self.outbox.write(data)

    def end_turn(self) -> None:
        self.events.append("turn")

    def resume(self) -> None:
        self.events.append("resume")

    def lost(self) -> None:
        self.events.append("lost")

    def fault(self) -> None:
        self.events.append("fault")
        raise RuntimeError("fault() raises, too")

    def force_close(self, reason: str) -> None:
        self.events.append(f"force_close {reason}")

    def fail_confirms(self) -> None:
        self.events.append("fail_confirms")


class EchoServer(PeerProtocol):
    protocol_name = "Echo 1"

    def __init__(self, gateway: Gateway) -> None:
        super().__init__(gateway.broker, gateway.turn, StructuredLog("parrot"), LOGIN_TIMEOUT_S)
        self.parrot = EchoMachine(self, self.io)
        self.io.connect(self.parrot)

    def ticks_to_rest(self) -> int:
        return MOST_RESTED


class Transport(StringTransport):
    """The interface of Twisted's transports that ``SocketWriter`` uses, over a socket that does not exist."""

    is_paused = False

    def setTcpNoDelay(self, enabled: bool) -> None:  # noqa: N802 - Twisted's name
        assert enabled

    def pauseProducing(self) -> None:
        self.is_paused = True

    def resumeProducing(self) -> None:
        self.is_paused = False


class Peer:
    def __init__(self) -> None:
        self.gateway = Gateway()
        self.server = EchoServer(self.gateway)
        self.machine = self.server.parrot
        self.transport: Any = Transport()
        self.server.makeConnection(self.transport)

    def send(self, data: bytes) -> bytes:
        """Send data; return the answer at the end of the turn."""
        self.server.dataReceived(data)
        return self.turn()

    def turn(self) -> bytes:
        self.gateway.end_turn()
        said: bytes = self.transport.value()
        self.transport.clear()
        return said

    def tick(self, seconds: float) -> None:
        for _ in range(round(seconds * TICKS_PER_S)):
            self.server.tick()


@pytest.fixture
def peer() -> Peer:
    return Peer()


def test_a_connection_is_polled_at_normal_priority_once_its_client_has_logged_in(peer: Peer) -> None:
    promoted: list[int] = []
    peer.transport.promote = lambda: promoted.append(1)
    assert peer.send(b"login") == b"login"
    assert promoted == []
    peer.server.opened()
    assert promoted == [1]


def test_output_is_written_once_at_the_end_of_the_turn(peer: Peer) -> None:
    peer.server.dataReceived(b"one ")
    peer.server.dataReceived(b"two")
    assert peer.transport.value() == b""
    assert peer.turn() == b"one two"


def test_output_that_promises_durability_waits_for_the_disk_and_later_output_follows_it(peer: Peer) -> None:
    peer.gateway.broker.declare_vhost("promised")
    peer.server.dataReceived(b"before ")
    peer.machine.outbox.promise(peer.gateway.broker.journal.pending_lsn)
    peer.server.dataReceived(b"promised ")
    assert peer.turn() == b"before "
    assert peer.send(b"after") == b""
    peer.gateway.store.commit()
    assert peer.turn() == b"promised after"


def test_the_login_timeout_is_counted_in_ticks(peer: Peer) -> None:
    peer.tick(LOGIN_TIMEOUT_S - 0.5)
    assert not peer.transport.disconnected
    peer.tick(0.5)
    assert peer.transport.disconnected


def test_the_last_output_is_sent_before_the_close_within_five_seconds(peer: Peer) -> None:
    assert peer.send(b"bye") == b"bye"
    assert peer.transport.disconnecting
    peer.tick(5)
    assert not peer.transport.disconnected
    peer.tick(0.5)
    assert peer.transport.disconnected


def test_ticks_without_input_and_without_output_are_counted_while_the_connection_is_open(peer: Peer) -> None:
    peer.tick(1)
    peer.machine.way = Phase.OPEN
    peer.tick(2)
    assert (peer.server.silent, peer.server.quiet) == (3, 3)
    peer.send(b"hello")
    peer.tick(0.5)
    assert (peer.server.silent, peer.server.quiet) == (0, 0)
    peer.tick(1)
    peer.server.send_ahead(b"beat")
    assert (peer.server.silent, peer.server.quiet) == (2, 0)


@pytest.mark.parametrize(
    ("expires_after_s", "rest_s"),
    [
        pytest.param(0, 3600, id="never"),
        pytest.param(7200, 60, id="late: the wall clock may change meanwhile"),
        pytest.param(20, 20, id="soon"),
    ],
)
def test_an_idle_connection_rests_for_an_hour_or_until_its_credentials_expire(
    peer: Peer, expires_after_s: int, rest_s: int
) -> None:
    if expires_after_s:
        peer.machine.expiry_s = peer.gateway.broker.clock.wall_ms() / 1000 + expires_after_s
    peer.machine.way = Phase.OPEN
    assert [peer.server.tick() for _ in range(3)] == [0, 0, rest_s * TICKS_PER_S]


def test_silence_is_not_counted_while_the_peer_is_not_read_from(peer: Peer) -> None:
    peer.machine.way = Phase.OPEN
    peer.send(b"publish")
    peer.gateway.broker.alarms.set(Resource.MEMORY, True, "full")
    peer.tick(10)
    assert peer.transport.is_paused
    assert peer.server.silent == 0


def test_an_alarm_holds_back_publishers_only(peer: Peer) -> None:
    peer.gateway.broker.alarms.set(Resource.MEMORY, True, "full")
    assert not peer.transport.is_paused
    peer.send(b"publish")
    assert peer.transport.is_paused
    peer.gateway.broker.alarms.set(Resource.MEMORY, False)
    assert not peer.transport.is_paused


def fill_backlog(peer: Peer, size: int) -> None:
    """Store a message of this size that the disk has not written yet."""
    vhost = peer.gateway.broker.vhost("/")
    vhost.declare_queue("q", is_durable=True)
    vhost.publish(vhost.default_exchange, Message("", "q", header_of(is_persistent=True), bytes(size)))
    peer.gateway.end_turn()


def test_a_backlog_of_the_disk_holds_back_busy_publishers_only(peer: Peer) -> None:
    peer.send(b"publish")
    fill_backlog(peer, BACKLOG_LIMIT)
    assert not peer.transport.is_paused
    peer.gateway.store.commit()
    peer.send(bytes(64 * 1024))
    fill_backlog(peer, BACKLOG_LIMIT)
    assert peer.transport.is_paused
    peer.gateway.store.commit()
    assert not peer.transport.is_paused


def test_a_publisher_that_was_busy_a_second_ago_is_not_held_back(peer: Peer) -> None:
    peer.send(b"publish")
    peer.send(bytes(64 * 1024))
    peer.tick(1)
    fill_backlog(peer, BACKLOG_LIMIT)
    assert not peer.transport.is_paused


def test_a_disk_that_is_far_behind_holds_back_every_publisher_but_no_consumer(peer: Peer) -> None:
    fill_backlog(peer, FAR_BEHIND_LIMIT)
    assert not peer.transport.is_paused
    peer.send(b"publish")
    assert peer.transport.is_paused
    peer.gateway.store.commit()
    assert not peer.transport.is_paused


def test_a_peer_that_does_not_take_its_output_is_not_read_from(peer: Peer) -> None:
    producer = peer.transport.producer
    producer.pauseProducing()
    assert peer.send(bytes(HIGH_WATER)) == b""
    assert not peer.machine.outbox.is_open
    assert not peer.transport.is_paused
    assert peer.send(bytes(FLOOD)) == b""
    assert peer.transport.is_paused
    producer.resumeProducing()
    assert len(peer.turn()) == HIGH_WATER + FLOOD
    assert not peer.transport.is_paused
    assert peer.machine.outbox.is_open
    assert "resume" in peer.machine.events


def test_an_internal_error_ends_only_its_own_connection(peer: Peer) -> None:
    peer.send(b"break")
    assert peer.machine.events == ["fault"]
    assert peer.transport.disconnected
    peer.server.connectionLost()
    assert peer.machine.events[-1] == "lost"
    assert len(peer.gateway.broker.connections) == 0


def test_the_brokers_calls_reach_the_machine(peer: Peer) -> None:
    peer.gateway.broker.connections.force_close("maintenance")
    peer.server.fail_confirms()
    assert peer.machine.events == ["force_close maintenance", "fail_confirms"]


def test_a_listing_shows_the_user_and_the_traffic(peer: Peer) -> None:
    peer.send(b"12345")
    info = peer.server.info()
    assert (info.protocol, info.state, info.is_tls) == ("Echo 1", "entering", False)
    assert (info.peer_host, info.peer_port) == ("192.168.1.1", 54321)
    assert (info.received, info.sent) == ((5, 1), (5, 1))
    assert peer.server.name == "192.168.1.1:54321 -> 10.0.0.1:12345"
    assert (peer.server.user_name, peer.server.vhost_name, peer.server.channel_count) == ("polly", "", 0)
    peer.machine.way = Phase.OPEN
    assert peer.server.info().state == "running"
