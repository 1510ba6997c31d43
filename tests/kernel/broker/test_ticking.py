"""Connections that rest tick as late as they asked for, or when they wake; they miss nothing."""

from typing import cast

from hypothesis import given
from hypothesis import strategies as st

from gateway.kernel.broker.connection_ticks import ConnectionTicks
from gateway.kernel.broker.connections import Connections, Peer
from gateway.kernel.broker.ticking import Ticking


class Client:
    """Counts the ticks since its last input, and times out after ``limit`` of them. One that ``rests`` skips ticks."""

    def __init__(self, limit: int, ticking: Ticking, *, rests: bool) -> None:
        self.wakes_at = self.rests_since = 0
        self.calls = 0
        self.silent = 0
        self.has_timed_out = False
        self._limit = limit
        self._ticking = ticking
        self._rests = rests
        self._has_received = False

    def receive(self) -> None:
        self._has_received = True
        self._ticking.wake(self)

    def tick(self) -> int:
        self.calls += 1
        self.silent = 0 if self._has_received else self.silent + 1
        self._has_received = False
        self.has_timed_out = self.has_timed_out or self.silent > self._limit
        return self._limit - self.silent if self._rests and self.silent > 1 else 0

    def rested(self, ticks: int) -> None:
        self.silent += ticks

    def fail(self) -> None:
        raise AssertionError


class Room:
    """Connections, and their ticks."""

    def __init__(self) -> None:
        self.connections = Connections()
        self.ticks = ConnectionTicks(self.connections, lambda call: call())

    def client(self, limit: int, *, rests: bool) -> Client:
        client = Client(limit, self.connections.ticking, rests=rests)
        self.connections.add(cast("Peer", client))
        return client


@given(st.lists(st.tuples(st.integers(1, 12), st.sets(st.integers(0, 40))), min_size=1, max_size=5))
def test_a_connection_that_rests_times_out_at_the_same_tick(plans: list[tuple[int, set[int]]]) -> None:
    """Each plan is the limit of a connection, and the ticks before which it receives."""
    room = Room()
    pairs = [(room.client(limit, rests=True), room.client(limit, rests=False)) for limit, _ in plans]
    for number in range(60):
        for (_, inputs), pair in zip(plans, pairs, strict=True):
            for client in pair if number in inputs else ():
                client.receive()
        room.ticks.tick_all()
        for resting, restless in pairs:
            assert resting.has_timed_out == restless.has_timed_out
            assert resting.wakes_at or resting.silent == restless.silent


def test_an_idle_connection_ticks_a_few_times() -> None:
    room = Room()
    clients = [room.client(120, rests=True) for _ in range(1000)]
    for _ in range(110):
        room.ticks.tick_all()
    assert {client.calls for client in clients} == {2}
    assert len(room.connections.ticking) == 0


def test_a_connection_that_is_removed_while_it_rests_is_forgotten() -> None:
    room = Room()
    client = room.client(10, rests=True)
    for _ in range(2):
        room.ticks.tick_all()
    assert client.wakes_at
    for _ in range(2):
        room.connections.remove(cast("Peer", client))
    client.receive()
    for _ in range(20):
        room.ticks.tick_all()
    assert client.calls == 2
    assert not room.connections.ticking._resting


def test_a_connection_that_is_removed_by_its_tick_does_not_rest() -> None:
    room = Room()
    client = room.client(10, rests=True)
    plain_tick = client.tick

    def tick() -> int:
        room.connections.remove(cast("Peer", client))
        plain_tick()
        return 5

    client.tick = tick  # type: ignore[method-assign]
    for _ in range(20):
        room.ticks.tick_all()
    assert client.calls == 1
    assert not room.connections.ticking._resting
