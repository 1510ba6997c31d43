"""The end of a large step: its changes follow those of the turn, and its indexes are freed in slices."""

from itertools import pairwise

import pytest

from gateway.kernel.journal.changes import Enqueued, Stored
from gateway.kernel.journal.open_step import OpenStep
from gateway.testing import MemoryBroker
from tests.clocks import TurnClock

COUNT = 5000

#: Entries that are freed in a turn of five readings of the clock of a millisecond each.
MOST_IN_A_TURN = 6 * 256


@pytest.fixture
def clock() -> TurnClock:
    return TurnClock()


@pytest.fixture
def broker(clock: TurnClock) -> MemoryBroker:
    broker = MemoryBroker(clock=clock)
    broker.vhost.declare_queue("q", is_durable=True)
    broker.commit()
    return broker


def step_of(broker: MemoryBroker, count: int) -> OpenStep:
    """Return an open step with as many messages."""
    journal = broker.kernel.journal
    step = journal.open_step()
    journal.enter(step)
    for number in range(count):
        broker.publish("q", b"%d" % number, is_persistent=True)
    journal.leave()
    return step


def test_the_changes_of_a_step_follow_those_of_the_turn_that_closes_it(broker: MemoryBroker) -> None:
    journal = broker.kernel.journal
    step = step_of(broker, 2)
    broker.publish("q", b"other", is_persistent=True)
    journal.close_step(step)
    broker.publish("q", b"last", is_persistent=True)
    bodies = [change.message.body for change in journal._changes if isinstance(change, Stored)]
    assert bodies == [b"other", b"0", b"1", b"last"]
    assert step.changes == []
    assert sum(isinstance(change, Enqueued) for change in journal._changes) == 4


def test_the_indexes_of_a_step_with_very_many_messages_are_freed_in_slices(
    broker: MemoryBroker, clock: TurnClock
) -> None:
    step = step_of(broker, COUNT)
    broker.kernel.journal.close_step(step)
    counts = [len(step.contents) + len(step.message_ids)]
    assert counts == [2 * COUNT]
    while clock.turn():
        counts.append(len(step.contents) + len(step.message_ids))
    turns = [before - after for before, after in pairwise(counts)]
    assert counts[-1] == 0
    assert max(turns) <= MOST_IN_A_TURN


def test_a_small_step_leaves_no_job(broker: MemoryBroker, clock: TurnClock) -> None:
    broker.kernel.journal.close_step(step_of(broker, 10))
    assert not len(clock.background)
