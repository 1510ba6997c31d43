"""A line reads its socket once when told, and says why the connection is over when it is."""

from collections.abc import Iterator

import pytest
from twisted.internet.main import CONNECTION_DONE, CONNECTION_LOST

from gateway.net.connection_io import ConnectionIO
from gateway.net.outbox import Outbox
from gateway.net.socket_writer import SocketWriter
from gateway.net.turn import Turn
from tests.net.pairs import Pair, connected
from tests.net.test_peer_protocol import Parrot, Peer
from tests.net.test_turn import Scheduled
from tests.net.test_wire import Transport


@pytest.fixture
def io() -> ConnectionIO:
    return Peer().server.io


@pytest.fixture
def pair() -> Iterator[Pair]:
    with connected() as pair:
        yield pair


def heard_by(io: ConnectionIO) -> bytes:
    assert isinstance(io.outbox, Outbox)
    return b"".join(io.outbox.pieces)


def test_what_is_read_is_the_machines(io: ConnectionIO, pair: Pair) -> None:
    ours, theirs = pair
    io.listen(ours.fileno())
    theirs.send(b"one ")
    assert io.read() is None
    theirs.send(b"two")
    assert io.read() is None
    assert heard_by(io) == b"one two"
    assert (io.octets, io.reads) == (7, 2)


def test_nothing_is_there_after_all(io: ConnectionIO, pair: Pair) -> None:
    io.listen(pair[0].fileno())
    assert (io.read(), io.reads) == (None, 0)


def test_the_peer_said_that_nothing_more_comes(io: ConnectionIO, pair: Pair) -> None:
    io.listen(pair[0].fileno())
    pair[1].close()
    assert (io.read(), io.reads) == (CONNECTION_DONE, 0)


def test_the_connection_broke(io: ConnectionIO, pair: Pair) -> None:
    ours, theirs = pair
    io.listen(ours.fileno())
    ours.send(b"never read")
    theirs.close()
    assert (io.read(), io.reads) == (CONNECTION_LOST, 0)


def test_a_line_that_was_cut_reads_nothing_and_knows_nobody(io: ConnectionIO, pair: Pair) -> None:
    io.listen(pair[0].fileno())
    pair[1].send(b"late")
    io.cut()
    assert io.read() is None
    assert pair[0].recv(10) == b"late"
    io.take(b"later")
    assert heard_by(io) == b""
    assert not isinstance(io.machine, Parrot)


def test_a_line_that_was_cut_writes_nothing_more(pair: Pair) -> None:
    ours, theirs = pair
    transport = Transport(ours)
    io = Peer().server.io
    writer = io.writer = SocketWriter(transport, io.congested)
    writer.send([b"before"], 6)
    io.cut()
    writer.send([b"after"], 5)  # by whoever still has it: the descriptor may be somebody else's by now
    assert theirs.recv(100) == b"before"
    assert transport.written == b"after"


def test_a_turn_ends_if_something_was_recorded_and_need_not_otherwise() -> None:
    schedule = Scheduled()
    peer = Peer()
    broker = peer.gateway.broker
    peer.gateway.end_turn()
    apart = ConnectionIO(peer.server, broker.journal, Turn(broker.journal, schedule))
    apart.take(b"nothing that matters")
    assert not schedule.turns
    broker.declare_vhost("recorded")
    apart.take(b"anything")
    apart.take(b"more")
    assert len(schedule.turns) == 1


def test_nothing_is_read_while_input_is_left_over_for_a_later_turn(io: ConnectionIO, pair: Pair) -> None:
    ours, theirs = pair
    io.listen(ours.fileno())
    theirs.send(b"work 2")
    assert io.read() is None
    theirs.send(b"later")
    assert io.read() is None
    assert heard_by(io) == b""
    assert io.go_on()
    assert not io.go_on()
    assert heard_by(io) == b"done"
    assert io.read() is None
    assert heard_by(io) == b"donelater"


def test_a_peer_that_is_held_back_gets_no_share_until_it_is_admitted_again() -> None:
    peer = Peer()
    io = peer.server.io
    io.take(b"work 2")
    io.admit(False)
    assert not io.go_on()
    assert not io.go_on()
    assert heard_by(io) == b""
    io.admit(True)
    assert io.go_on()
    assert not io.go_on()
    assert heard_by(io) == b"done"


def test_a_transport_that_reads_by_itself_is_paused_while_input_is_left_over() -> None:
    peer = Peer()
    io, transport = peer.server.io, peer.transport
    io.take(b"work 1")
    assert transport.is_paused
    assert not io.go_on()
    assert not transport.is_paused
