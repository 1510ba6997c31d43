"""The choice of the copy of a log to read, after gaps."""

from collections.abc import Mapping
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from gateway.cluster.queue_log import QueueId
from gateway_jetstream.jetstream.api import JetStreamApi, StreamState
from gateway_jetstream.ports.copies import Copies

_SERVERS = ("a", "b", "c")
_QUEUE = QueueId(1)
_OTHER_QUEUE = QueueId(2)


class Servers(JetStreamApi):
    """A stream on three servers. Its leader steps down in favour of the next one."""

    def __init__(self) -> None:
        self.leader = "a"
        self.moves = 0
        #: Servers that are missing in answers: each that answers lists the others, also if it leads no more.
        self.unnamed: set[str] = set()

    async def stream(self, name: str, timeout_s: float | None = None) -> StreamState:
        config: Mapping[str, Any] = {}
        named = tuple(each for each in _SERVERS if each != self.leader and each not in self.unnamed)
        return StreamState(config, 0, 0, 0, self.leader, named)

    async def step_down(self, stream: str, preferred: str = "", timeout_s: float | None = None) -> None:
        self.moves += 1
        self.leader = _SERVERS[(_SERVERS.index(self.leader) + 1) % len(_SERVERS)]


class Reading:
    """Reads of the logs of queues, on a fake clock."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.servers = Servers()
        self.copies = Copies(self.servers, self.clock)

    def wished(self, queue: QueueId = _QUEUE) -> set[str]:
        found: list[set[str]] = []
        wished = Deferred.fromCoroutine(self.copies.wished("log", queue))
        wished.addCallback(lambda accepts: found.append({each for each in _SERVERS if accepts(each)}))
        return found[0]

    def meet_gap(self, server: str, queue: QueueId = _QUEUE) -> "Deferred[None]":
        self.copies.note_read(queue, server)
        moved = Deferred.fromCoroutine(self.copies.move_leader("log", queue))
        self.clock.pump([0.1] * 2)
        return moved


def test_a_gap_moves_the_leader_and_the_copy_is_avoided() -> None:
    reading = Reading()
    assert reading.wished() == {"b", "c"}
    assert reading.meet_gap("b").called
    assert reading.servers.leader == "b"
    assert reading.wished() == {"a", "c"}


def test_a_leader_that_was_moved_stays_while_another_copy_is_left() -> None:
    reading = Reading()
    reading.meet_gap("b", _OTHER_QUEUE)
    assert reading.meet_gap("c").called
    assert (reading.servers.leader, reading.servers.moves) == ("b", 1)
    assert reading.wished() == {"a"}


def test_the_leader_is_moved_again_if_only_its_copy_is_left() -> None:
    reading = Reading()
    reading.meet_gap("c")
    assert (reading.servers.leader, reading.wished()) == ("b", {"a"})
    moved = reading.meet_gap("a")
    assert not moved.called
    reading.clock.pump([1.0] * 6)
    assert moved.called
    assert (reading.servers.leader, reading.wished()) == ("c", {"b"})


def test_a_copy_is_avoided_still_if_the_others_are_not_named() -> None:
    reading = Reading()
    reading.meet_gap("c")
    reading.servers.unnamed = {"a"}
    assert reading.wished() == {"a", "b", "c"}  # any, but "c" is still avoided
    assert reading.copies.is_avoided(_QUEUE, "c")
    reading.servers.unnamed = set()
    assert reading.wished() == {"a"}


def test_a_leader_that_another_queue_moved_meanwhile_stays() -> None:
    reading = Reading()
    reading.meet_gap("c")
    waiting = [reading.meet_gap("a"), reading.meet_gap("a", _OTHER_QUEUE), reading.meet_gap("c", _OTHER_QUEUE)]
    reading.clock.pump([1.0] * 6)
    assert all(moved.called for moved in waiting)
    assert reading.servers.moves == 2
