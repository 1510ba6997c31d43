"""A ``ConnectionIO`` reads its socket once per event, and returns the reason when the connection is over."""

from collections.abc import Iterator
from contextlib import suppress
from socket import SO_RCVBUF, SO_SNDBUF, SOL_SOCKET

import pytest
from twisted.internet.main import CONNECTION_DONE, CONNECTION_LOST

from gateway.net.connection_io import FIRST_READ, LARGE, LARGEST_READ, ConnectionIO
from gateway.net.outbox import Outbox
from gateway.net.socket_writer import SocketWriter
from gateway.net.turn import Turn
from tests.net.pairs import Pair, connected
from tests.net.test_peer_protocol import EchoMachine, Peer
from tests.net.test_socket_writer import Transport
from tests.net.test_turn import Scheduled

#: Its doubles derive from compiled classes.
pytestmark = pytest.mark.source


@pytest.fixture
def io() -> ConnectionIO:
    return Peer().server.io


@pytest.fixture
def pair() -> Iterator[Pair]:
    with connected() as pair:
        yield pair


def input_of(io: ConnectionIO) -> bytes:
    assert isinstance(io.outbox, Outbox)
    return b"".join(io.outbox.pieces)


def test_received_bytes_are_passed_to_the_machine(io: ConnectionIO, pair: Pair) -> None:
    ours, theirs = pair
    io.listen(ours.fileno())
    theirs.send(b"one ")
    assert io.read() is None
    theirs.send(b"two")
    assert io.read() is None
    assert input_of(io) == b"one two"
    assert (io.octets, io.reads) == (7, 2)


def test_a_read_without_data_is_ignored(io: ConnectionIO, pair: Pair) -> None:
    io.listen(pair[0].fileno())
    assert (io.read(), io.reads) == (None, 0)


def test_an_orderly_close_by_the_peer_is_reported(io: ConnectionIO, pair: Pair) -> None:
    io.listen(pair[0].fileno())
    pair[1].close()
    assert (io.read(), io.reads) == (CONNECTION_DONE, 0)


def test_a_broken_connection_is_reported(io: ConnectionIO, pair: Pair) -> None:
    ours, theirs = pair
    io.listen(ours.fileno())
    ours.send(b"never read")
    theirs.close()
    assert (io.read(), io.reads) == (CONNECTION_LOST, 0)


def test_after_cut_nothing_is_read_and_no_references_remain(io: ConnectionIO, pair: Pair) -> None:
    io.listen(pair[0].fileno())
    pair[1].send(b"late")
    io.detach()
    assert io.read() is None
    assert pair[0].recv(10) == b"late"
    io.take(b"later")
    assert input_of(io) == b""
    assert not isinstance(io.machine, EchoMachine)


def test_after_cut_nothing_is_written(pair: Pair) -> None:
    ours, theirs = pair
    transport = Transport(ours)
    io = Peer().server.io
    writer = io.writer = SocketWriter(transport, io)
    writer.send([b"before"], 6)
    io.detach()
    writer.send([b"after"], 5)  # a reference may remain, and the descriptor may be reused
    assert theirs.recv(100) == b"before"
    assert transport.written == b"after"


def test_a_turn_end_is_scheduled_only_if_changes_were_recorded() -> None:
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


def test_nothing_is_read_while_leftover_input_waits_for_a_later_turn(io: ConnectionIO, pair: Pair) -> None:
    ours, theirs = pair
    io.listen(ours.fileno())
    theirs.send(b"work 2")
    assert io.read() is None
    theirs.send(b"later")
    assert io.read() is None
    assert input_of(io) == b""
    assert io.go_on()
    assert not io.go_on()
    assert input_of(io) == b"done"
    assert io.read() is None
    assert input_of(io) == b"donelater"


def filled(pair: Pair) -> int:
    """Fill the socket; return the number of bytes."""
    ours, theirs = pair
    ours.setsockopt(SOL_SOCKET, SO_RCVBUF, 8 * LARGEST_READ)
    theirs.setsockopt(SOL_SOCKET, SO_SNDBUF, 8 * LARGEST_READ)
    theirs.setblocking(False)
    size = 0
    with suppress(BlockingIOError):
        while size < 4 * FIRST_READ:
            size += theirs.send(bytes(FIRST_READ))
    return size


def await_packet(io: ConnectionIO, size: int) -> None:
    """Let the machine wait for the rest of a message."""
    assert isinstance(io.machine, EchoMachine)
    io.machine.packet_size = size


def read_size(io: ConnectionIO) -> int:
    """Read once; return the number of bytes."""
    before = io.octets
    assert io.read() is None
    return io.octets - before


def test_reads_grow_while_large_messages_arrive(io: ConnectionIO, pair: Pair) -> None:
    io.listen(pair[0].fileno())
    await_packet(io, LARGE)
    assert filled(pair) >= 3 * FIRST_READ
    assert (read_size(io), read_size(io)) == (FIRST_READ, 2 * FIRST_READ)


def test_reads_of_small_messages_do_not_grow(io: ConnectionIO, pair: Pair) -> None:
    """They would be more work at once, for which other clients wait."""
    io.listen(pair[0].fileno())
    await_packet(io, LARGE - 1)
    filled(pair)
    assert (read_size(io), read_size(io)) == (FIRST_READ, FIRST_READ)


def test_reads_shrink_when_messages_are_small_again(io: ConnectionIO, pair: Pair) -> None:
    io.listen(pair[0].fileno())
    io._read_size = 2 * FIRST_READ
    filled(pair)
    assert (read_size(io), read_size(io)) == (2 * FIRST_READ, FIRST_READ)


def test_reads_shrink_when_little_arrives(io: ConnectionIO, pair: Pair) -> None:
    io.listen(pair[0].fileno())
    io._read_size = 4 * FIRST_READ
    await_packet(io, LARGE)
    for _ in range(2):
        pair[1].send(b"a little")
        assert read_size(io) == 8
    filled(pair)
    assert read_size(io) == FIRST_READ


def test_reads_shrink_after_some_input_is_left_over(io: ConnectionIO, pair: Pair) -> None:
    io.listen(pair[0].fileno())
    io._read_size = LARGEST_READ
    pair[1].send(b"work 2")
    assert io.read() is None
    assert io.has_leftover
    while io.go_on():
        pass
    filled(pair)
    assert read_size(io) == FIRST_READ


def test_leftover_input_of_a_held_back_peer_waits_until_reading_resumes() -> None:
    peer = Peer()
    io = peer.server.io
    io.take(b"work 2")
    io.set_reading(False)
    assert not io.go_on()
    assert not io.go_on()
    assert input_of(io) == b""
    io.set_reading(True)
    assert io.go_on()
    assert not io.go_on()
    assert input_of(io) == b"done"


def test_a_reading_transport_is_paused_while_input_is_left_over() -> None:
    peer = Peer()
    io, transport = peer.server.io, peer.transport
    io.take(b"work 1")
    assert transport.is_paused
    assert not io.go_on()
    assert not transport.is_paused
