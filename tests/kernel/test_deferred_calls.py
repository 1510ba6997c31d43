"""Calls that a turn has no time for run in later turns; connections that caused them wait."""

import pytest

from gateway.kernel.budget import PendingWork
from gateway.kernel.clock import SLICE_S
from gateway.testing import MemoryBroker
from tests.clocks import LOOK_S, TickingClock


@pytest.fixture
def broker() -> MemoryBroker:
    """A broker whose clock advances by a millisecond with each read."""
    return MemoryBroker(clock=TickingClock())


def test_deferred_calls_run_in_order_in_later_turns(broker: MemoryBroker) -> None:
    called: list[int] = []
    for number in range(3):
        broker.kernel.journal.deferred.add(lambda number=number: called.append(number))
    assert called == []
    broker.clock.advance(0)
    assert called == [0, 1, 2]


def test_deferred_calls_run_in_slices(broker: MemoryBroker) -> None:
    called: list[int] = []
    for number in range(100):
        broker.kernel.journal.deferred.add(lambda number=number: called.append(number))
    in_a_turn = []
    while len(called) < 100:
        before = len(called)
        broker.clock._due[0][2].ring()
        broker.clock._due.pop(0)
        in_a_turn.append(len(called) - before)
    assert max(in_a_turn) <= SLICE_S / LOOK_S + 1


def test_the_connection_at_hand_waits_until_no_call_is_deferred(broker: MemoryBroker) -> None:
    budget, deferred = broker.kernel.journal.budget, broker.kernel.journal.deferred
    deferred.add(lambda: None)
    work = budget.take_pending()
    assert work is not None
    assert not work.is_done
    broker.clock.advance(0)
    assert work.is_done


def test_pending_work_of_the_request_stays_pending(broker: MemoryBroker) -> None:
    """A connection that waits for its own work is not resumed by the end of the deferred calls."""
    budget, own = broker.kernel.journal.budget, PendingWork()
    budget.leave_pending(own)
    broker.kernel.journal.deferred.add(lambda: None)
    assert budget.take_pending() is own


def test_a_call_that_raises_does_not_stop_the_others(broker: MemoryBroker) -> None:
    called: list[int] = []
    deferred = broker.kernel.journal.deferred
    deferred.add(lambda: called.append(1 // 0))
    deferred.add(lambda: called.append(2))
    work = broker.kernel.journal.budget.take_pending()
    with pytest.raises(ZeroDivisionError):
        broker.clock.advance(0)
    broker.clock.advance(0)
    assert called == [2]
    assert work is not None
    assert work.is_done
