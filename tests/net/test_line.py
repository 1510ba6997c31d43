"""A line reads its socket once when told, and says why the connection is over when it is."""

from collections.abc import Callable

import pytest
from twisted.internet.main import CONNECTION_DONE, CONNECTION_LOST

from gateway.net.line import Line
from gateway.net.outbox import Outbox
from gateway.net.turn import Turn
from tests.net.test_peer_protocol import Parrot, Peer


class Socket:
    """Gives out, or raises, what a test put in."""

    def __init__(self, *found: bytes | OSError) -> None:
        self._found = list(found)

    def recv(self, size: int) -> bytes:
        found = self._found.pop(0)
        if isinstance(found, OSError):
            raise found
        return found[:size]


@pytest.fixture
def line() -> Line:
    return Peer().server.line


def heard_by(line: Line) -> bytes:
    assert isinstance(line.outbox, Outbox)
    return b"".join(line.outbox.pieces)


def test_what_is_read_is_the_machines(line: Line) -> None:
    line.listen(Socket(b"one ", b"two").recv)
    assert (line.read(), line.read()) == (None, None)
    assert heard_by(line) == b"one two"
    assert (line.octets, line.reads) == (7, 2)


ENDS = [
    pytest.param(b"", CONNECTION_DONE, id="the peer said that nothing more comes"),
    pytest.param(ConnectionResetError(), CONNECTION_LOST, id="the connection broke"),
    pytest.param(BlockingIOError(), None, id="nothing is there after all"),
]


@pytest.mark.parametrize(("found", "why"), ENDS)
def test_the_end_of_a_connection_is_told(line: Line, found: bytes | OSError, why: Exception | None) -> None:
    line.listen(Socket(found).recv)
    assert line.read() is why
    assert line.reads == 0


def test_a_line_that_was_cut_reads_nothing_and_knows_nobody(line: Line) -> None:
    line.listen(Socket(b"late").recv)
    line.cut()
    assert line.read() is None
    line.take(b"later")
    assert heard_by(line) == b""
    assert not isinstance(line.machine, Parrot)


def test_a_turn_ends_if_something_was_recorded_and_need_not_otherwise() -> None:
    scheduled: list[Callable[[], None]] = []
    peer = Peer()
    broker = peer.gateway.broker
    peer.gateway.end_turn()
    apart = Line(peer.server, broker.journal, Turn(broker.journal.flush, scheduled.append))
    apart.take(b"nothing that matters")
    assert not scheduled
    broker.declare_vhost("recorded")
    apart.take(b"anything")
    apart.take(b"more")
    assert len(scheduled) == 1
