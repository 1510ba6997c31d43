"""Updates of the flow control of all connections: a few hundred in one turn."""

from collections.abc import Callable
from typing import cast

import pytest

from gateway.kernel.broker.connections import Connections, Peer
from gateway.kernel.broker.flow_updates import MOST_UPDATED, FlowUpdates


class Publisher:
    """Counts its updates."""

    def __init__(self) -> None:
        self.updates = 0
        self.on_update: Callable[[], None] = lambda: None

    def update_flow_control(self) -> None:
        self.updates += 1
        self.on_update()


class Room:
    """Connections, their updates, and the calls of later turns."""

    def __init__(self, count: int) -> None:
        self.connections = Connections()
        self.publishers = [Publisher() for _ in range(count)]
        for publisher in self.publishers:
            self.connections.add(cast("Peer", publisher))
        self.later: list[Callable[[], None]] = []
        self.updates = FlowUpdates(self.connections, self.later.append)

    def turn(self) -> None:
        """Make the calls that were left to this turn."""
        calls, self.later[:] = list(self.later), []
        for call in calls:
            call()

    @property
    def updated(self) -> int:
        """The number of connections that were updated, and of repetitions."""
        return sum(publisher.updates for publisher in self.publishers)


def test_few_connections_are_updated_at_once() -> None:
    room = Room(MOST_UPDATED - 1)
    room.updates.update_all()
    assert (room.updated, room.later) == (MOST_UPDATED - 1, [])


def test_of_many_connections_a_part_is_updated_in_each_turn() -> None:
    room = Room(3 * MOST_UPDATED - 10)
    room.updates.update_all()
    assert room.updated == MOST_UPDATED
    room.turn()
    assert room.updated == 2 * MOST_UPDATED
    room.turn()
    assert (room.updated, room.later) == (3 * MOST_UPDATED - 10, [])


@pytest.mark.parametrize("changes", [1, 5])
def test_each_connection_is_updated_after_the_last_change(changes: int) -> None:
    room = Room(3 * MOST_UPDATED)
    for _ in range(changes):
        room.updates.update_all()
    before = [publisher.updates for publisher in room.publishers]
    room.updates.update_all()
    while room.later:
        room.turn()
    assert all(publisher.updates > updates for publisher, updates in zip(room.publishers, before, strict=True))


def test_changes_in_each_turn_keep_no_connection_waiting() -> None:
    room = Room(3 * MOST_UPDATED)
    for _ in range(4):
        room.updates.update_all()
        room.turn()
    assert all(publisher.updates for publisher in room.publishers)


def test_a_connection_that_has_closed_meanwhile_is_not_updated() -> None:
    room = Room(2 * MOST_UPDATED)
    room.updates.update_all()
    last = room.publishers[-1]
    room.connections.remove(cast("Peer", last))
    while room.later:
        room.turn()
    assert last.updates == 0
    assert room.updated == 2 * MOST_UPDATED - 1


def test_an_update_may_cause_another_one() -> None:
    room = Room(10)
    room.publishers[0].on_update = lambda: room.updates.update_all() if room.updated < 5 else None
    room.updates.update_all()
    while room.later:
        room.turn()
    assert all(publisher.updates for publisher in room.publishers)
