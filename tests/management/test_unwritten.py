"""Slices of a batch wait for the disk; how many of them may is a matter of how long they wait."""

import pytest
from twisted.internet.defer import Deferred

from gateway.kernel.journal.changes import Dequeued
from gateway.kernel.journal.confirms import Confirms
from gateway.management.pipeline.unwritten import ALONE_S, LEAST, MOST, SHARED_S, Unwritten
from gateway.testing import MemoryBroker


@pytest.fixture
def broker() -> MemoryBroker:
    return MemoryBroker()


def add(broker: MemoryBroker, unwritten: Unwritten) -> "Deferred[None] | None":
    """Add a slice in a turn of its own."""
    journal = broker.kernel.journal
    journal.record(Dequeued(1))
    waiting = unwritten.add()
    journal.flush()
    return waiting


def fill(broker: MemoryBroker, unwritten: Unwritten) -> "tuple[int, Deferred[None]]":
    """Add slices until one has to wait; return how many did not."""
    added = 0
    while (waiting := add(broker, unwritten)) is None:
        added += 1
    return added, waiting


def write(broker: MemoryBroker, wait_s: float) -> None:
    """Let the disk write everything after a time."""
    broker.clock.advance(wait_s)
    broker.commit()


def test_the_next_slice_waits_until_the_first_of_several_is_durable(broker: MemoryBroker) -> None:
    unwritten = Unwritten(broker.kernel.journal)
    added, waiting = fill(broker, unwritten)
    assert added == LEAST
    assert not waiting.called
    write(broker, 0)
    assert waiting.called
    assert add(broker, unwritten) is None


def test_more_may_wait_on_a_fast_disk_up_to_a_limit(broker: MemoryBroker) -> None:
    unwritten = Unwritten(broker.kernel.journal)
    numbers = []
    for _ in range(MOST):
        numbers.append(fill(broker, unwritten)[0])
        write(broker, ALONE_S / 2)
    assert numbers == sorted(numbers)
    assert (numbers[0], numbers[-1]) == (LEAST, MOST)


def test_fewer_may_wait_once_they_wait_long_down_to_a_limit(broker: MemoryBroker) -> None:
    unwritten = Unwritten(broker.kernel.journal)
    unwritten.most = MOST
    numbers = []
    for _ in range(MOST):
        numbers.append(fill(broker, unwritten)[0])
        write(broker, 2 * ALONE_S)
    assert numbers == sorted(numbers, reverse=True)
    assert (numbers[0], numbers[-1]) == (MOST, LEAST)


def test_slices_that_never_fill_the_limit_do_not_raise_it(broker: MemoryBroker) -> None:
    unwritten = Unwritten(broker.kernel.journal)
    for _ in range(MOST):
        assert add(broker, unwritten) is None
        write(broker, 0)
    assert unwritten.most == LEAST


def test_the_waits_are_shorter_while_other_clients_wait_for_confirms(broker: MemoryBroker) -> None:
    unwritten = Unwritten(broker.kernel.journal)
    confirms = Confirms(broker.kernel.journal, lambda number, is_multiple, is_accepted: None)
    unwritten.most = 10
    between_s = (SHARED_S + ALONE_S) / 2
    confirms.published(True)
    fill(broker, unwritten)
    write(broker, between_s)
    assert unwritten.most < 10
    broker.clock.advance(1)
    unwritten.most = 10
    fill(broker, unwritten)
    write(broker, between_s)
    assert unwritten.most == 11
