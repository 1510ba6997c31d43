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
def line() -> ConnectionIO:
    return Peer().server.line


@pytest.fixture
def pair() -> Iterator[Pair]:
    with connected() as pair:
        yield pair


def heard_by(line: ConnectionIO) -> bytes:
    assert isinstance(line.outbox, Outbox)
    return b"".join(line.outbox.pieces)


def test_what_is_read_is_the_machines(line: ConnectionIO, pair: Pair) -> None:
    ours, theirs = pair
    line.listen(ours.fileno())
    theirs.send(b"one ")
    assert line.read() is None
    theirs.send(b"two")
    assert line.read() is None
    assert heard_by(line) == b"one two"
    assert (line.octets, line.reads) == (7, 2)


def test_nothing_is_there_after_all(line: ConnectionIO, pair: Pair) -> None:
    line.listen(pair[0].fileno())
    assert (line.read(), line.reads) == (None, 0)


def test_the_peer_said_that_nothing_more_comes(line: ConnectionIO, pair: Pair) -> None:
    line.listen(pair[0].fileno())
    pair[1].close()
    assert (line.read(), line.reads) == (CONNECTION_DONE, 0)


def test_the_connection_broke(line: ConnectionIO, pair: Pair) -> None:
    ours, theirs = pair
    line.listen(ours.fileno())
    ours.send(b"never read")
    theirs.close()
    assert (line.read(), line.reads) == (CONNECTION_LOST, 0)


def test_a_line_that_was_cut_reads_nothing_and_knows_nobody(line: ConnectionIO, pair: Pair) -> None:
    line.listen(pair[0].fileno())
    pair[1].send(b"late")
    line.cut()
    assert line.read() is None
    assert pair[0].recv(10) == b"late"
    line.take(b"later")
    assert heard_by(line) == b""
    assert not isinstance(line.machine, Parrot)


def test_a_line_that_was_cut_writes_nothing_more(pair: Pair) -> None:
    ours, theirs = pair
    transport = Transport(ours)
    line = Peer().server.line
    wire = line.wire = SocketWriter(transport, line.congested)
    wire.send([b"before"], 6)
    line.cut()
    wire.send([b"after"], 5)  # by whoever still has it: the descriptor may be somebody else's by now
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


def test_nothing_is_read_while_input_is_left_over_for_a_later_turn(line: ConnectionIO, pair: Pair) -> None:
    ours, theirs = pair
    line.listen(ours.fileno())
    theirs.send(b"work 2")
    assert line.read() is None
    theirs.send(b"later")
    assert line.read() is None
    assert heard_by(line) == b""
    assert line.go_on()
    assert not line.go_on()
    assert heard_by(line) == b"done"
    assert line.read() is None
    assert heard_by(line) == b"donelater"


def test_a_peer_that_is_held_back_gets_no_share_until_it_is_admitted_again() -> None:
    peer = Peer()
    line = peer.server.line
    line.take(b"work 2")
    line.admit(False)
    assert not line.go_on()
    assert not line.go_on()
    assert heard_by(line) == b""
    line.admit(True)
    assert line.go_on()
    assert not line.go_on()
    assert heard_by(line) == b"done"


def test_a_transport_that_reads_by_itself_is_paused_while_input_is_left_over() -> None:
    peer = Peer()
    line, transport = peer.server.line, peer.transport
    line.take(b"work 1")
    assert transport.is_paused
    assert not line.go_on()
    assert not transport.is_paused
