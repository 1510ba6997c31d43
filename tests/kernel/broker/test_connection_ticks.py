"""The ticks of all connections: a few hundred in one turn."""

from collections.abc import Callable
from typing import cast

import pytest

from gateway.kernel.broker.connection_ticks import MOST_TICKED, MOST_TURNS, ConnectionTicks
from gateway.kernel.broker.connections import Connections, Peer


class Client:
    """Counts its ticks."""

    is_faulty = False

    def __init__(self) -> None:
        self.ticks = 0
        self.has_failed = False

    def tick(self) -> int:
        self.ticks += 1
        if self.is_faulty:
            raise RuntimeError
        return 0

    def fail(self) -> None:
        self.has_failed = True


class Room:
    """Connections, their ticks, and the calls of later turns."""

    def __init__(self, count: int) -> None:
        self.connections = Connections()
        self.clients = [Client() for _ in range(count)]
        for client in self.clients:
            self.connections.add(cast("Peer", client))
        self.later: list[Callable[[], None]] = []
        self.ticks = ConnectionTicks(self.connections, self.later.append)

    def turn(self) -> None:
        """Make the calls that were left to this turn."""
        calls, self.later[:] = list(self.later), []
        for call in calls:
            call()

    @property
    def ticked(self) -> int:
        """The number of ticks of all connections."""
        return sum(client.ticks for client in self.clients)


@pytest.mark.parametrize("count", [0, 1, MOST_TICKED - 1])
def test_few_connections_tick_at_once(count: int) -> None:
    room = Room(count)
    for _ in range(2):
        room.ticks.tick_all()
    assert (room.ticked, room.later) == (2 * count, [])


def test_of_many_connections_a_part_ticks_in_each_turn() -> None:
    room = Room(3 * MOST_TICKED - 10)
    room.ticks.tick_all()
    assert room.ticked == MOST_TICKED
    room.turn()
    room.ticks.tick_all()
    assert room.ticked == 2 * MOST_TICKED, "the round goes on, and no other begins"
    room.turn()
    assert room.later == []
    assert {client.ticks for client in room.clients} == {1}


def test_very_many_connections_tick_within_a_number_of_turns() -> None:
    room = Room((MOST_TURNS + 10) * MOST_TICKED)
    room.ticks.tick_all()
    turns = 1
    while room.later:
        room.turn()
        turns += 1
    assert {client.ticks for client in room.clients} == {1}
    assert turns <= MOST_TURNS + 1


def test_a_connection_that_was_closed_meanwhile_does_not_tick() -> None:
    room = Room(MOST_TICKED + 2)
    room.ticks.tick_all()
    room.connections.remove(cast("Peer", room.clients[-1]))
    room.turn()
    assert [client.ticks for client in room.clients[-2:]] == [1, 0]


def test_a_fault_closes_its_connection_and_no_other() -> None:
    room = Room(MOST_TICKED + 3)
    for number in (1, MOST_TICKED):
        room.clients[number].is_faulty = True
    room.ticks.tick_all()
    room.turn()
    assert [number for number, client in enumerate(room.clients) if client.has_failed] == [1, MOST_TICKED]
    assert {client.ticks for client in room.clients} == {1}
