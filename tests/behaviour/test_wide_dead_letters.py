"""Dead letters to many queues: a turn publishes a bounded number, in order; a crash neither loses nor doubles one."""

import pytest

from gateway.kernel.messages.message import Message
from gateway.kernel.queueing.delivery_outcome import DeliveryOutcome
from gateway.kernel.queueing.pending_dead_letters import FIRST_RETRY_MS, LONGEST_RETRY_MS
from gateway.kernel.queueing.queue import Queue
from gateway.kernel.routing.exchange import MOST_QUEUES
from gateway.testing import MemoryBroker, Recipient
from gateway.testing.broker import header_of
from gateway.testing.clock import FakeClock
from tests.behaviour.wide_letters import (
    WIDTH,
    fanout,
    pass_a_second,
    require_each_once_in_slices,
    run_turns,
    source,
    targets_of,
    waiting,
)
from tests.clocks import TurnClock

MOST_A_TURN = 1024 + WIDTH
#: Offers that one turn of the background may make while the clock advances with each reading.
MOST_A_SLICE = 8 * WIDTH


@pytest.fixture
def broker() -> MemoryBroker:
    """A broker whose clock advances with each reading, so that slices end."""
    return MemoryBroker(clock=TurnClock())


def test_a_turn_publishes_a_bounded_number_of_dead_letters_of_overflowing_messages(broker: MemoryBroker) -> None:
    targets = fanout(broker, "wide")
    source(broker, "wide", x_max_length=1)
    for number in range(20):
        broker.publish("source", b"%d" % number, is_persistent=True)
    assert waiting(targets) <= MOST_A_TURN
    run_turns(broker, lambda: waiting(targets))
    assert [len(queue) for queue in targets] == [19] * WIDTH
    recipient = Recipient()
    recipient.consume(targets[-1])
    assert recipient.bodies == [b"%d" % number for number in range(19)]


def test_the_connection_that_causes_dead_letters_waits_until_they_are_published(broker: MemoryBroker) -> None:
    fanout(broker, "wide")
    source(broker, "wide", x_max_length=1)
    for _ in range(10):
        broker.publish("source")
    work = broker.kernel.journal.budget.take_pending()
    assert work is not None
    assert not work.is_done
    run_turns(broker, lambda: 0)
    assert work.is_done
    assert broker.kernel.journal.budget.pending is None


def test_dead_letters_that_cause_dead_letters_are_published_in_many_turns(broker: MemoryBroker) -> None:
    last = fanout(broker, "last")
    fanout(broker, "middle", 50, x_max_length=0, x_dead_letter_exchange="last")
    source(broker, "middle", x_max_length=0)
    broker.publish("source", b"m", is_persistent=True)
    rises = [waiting(last), *run_turns(broker, lambda: waiting(last))]
    assert sum(rises) == 50 * WIDTH
    assert max(rises) <= MOST_A_SLICE


def test_rejected_deliveries_are_dead_lettered_in_order_in_many_turns(broker: MemoryBroker) -> None:
    targets = fanout(broker, "wide")
    queue = source(broker, "wide")
    recipient = Recipient()
    recipient.consume(queue)
    for number in range(40):
        broker.publish("source", b"%d" % number, is_persistent=True)
    recipient.settle(None, DeliveryOutcome.REJECTED, up_to=True)
    assert 0 < waiting(targets) <= MOST_A_TURN
    assert (len(queue), queue.unsettled) == (0, 0)
    run_turns(broker, lambda: waiting(targets))
    consumer = Recipient()
    consumer.consume(targets[0])
    assert consumer.bodies == [b"%d" % number for number in range(40)]


def test_a_crash_returns_messages_whose_drops_wait(broker: MemoryBroker) -> None:
    targets = fanout(broker, "wide")
    source(broker, "wide", x_max_length=2)
    for number in range(20):
        broker.publish("source", b"%d" % number, is_persistent=True)
    broker.commit()
    assert waiting(targets) < 18 * WIDTH
    restarted = broker.crashed()
    targets = [restarted.vhost.queue(queue.name) for queue in targets]
    run_turns(restarted, lambda: waiting(targets))
    assert [len(queue) for queue in targets] == [18] * WIDTH
    assert len(restarted.vhost.queue("source")) == 2


@pytest.fixture
def very_wide() -> MemoryBroker:
    """A broker with a queue that dead-letters to very many others, and a message in it."""
    broker = MemoryBroker(clock=TurnClock())
    fanout(broker, "wide", MOST_QUEUES + 300)
    source(broker, "wide", x_max_length=1)
    broker.publish("source", b"first", is_persistent=True)
    broker.commit()
    return broker


def test_a_dead_letter_for_very_many_queues_is_offered_in_slices(very_wide: MemoryBroker) -> None:
    targets = targets_of(very_wide)
    very_wide.publish("source", b"second", is_persistent=True)
    assert waiting(targets) == 0
    rises = run_turns(very_wide, lambda: waiting(targets))
    assert sum(rises) == len(targets)
    assert max(rises) < len(targets) // 2


def test_a_crash_within_a_dead_letter_for_very_many_queues_undoes_it(very_wide: MemoryBroker) -> None:
    very_wide.publish("source", b"second", is_persistent=True)
    very_wide.commit()
    assert isinstance(very_wide.clock, TurnClock)
    while waiting(targets_of(very_wide)) == 0:
        very_wide.clock.turn()
        very_wide.commit()
    assert waiting(targets_of(very_wide)) < len(targets_of(very_wide))
    restarted = very_wide.crashed()
    assert waiting(targets_of(restarted)) == 0
    run_turns(restarted, lambda: 0)
    assert [len(queue) for queue in targets_of(restarted)] == [1] * len(targets_of(restarted))
    restarted.commit()
    again = restarted.crashed()
    assert waiting(targets_of(again)) == len(targets_of(again))
    assert len(again.vhost.queue("source")) == 1


def test_a_fault_in_a_drop_is_contained_and_the_others_are_made(broker: MemoryBroker) -> None:
    made: list[int] = []
    faults = broker.kernel.faults.total
    broker.vhost.dead_letters.postponed.add(lambda: made.append(1 // 0))
    broker.vhost.dead_letters.postponed.add(lambda: made.append(2))
    run_turns(broker, lambda: 0)
    assert made == [2]
    assert broker.kernel.faults.total == faults + 1


def test_a_fault_in_a_drop_for_very_many_queues_does_not_hold_up_later_ones(very_wide: MemoryBroker) -> None:
    postpone = very_wide.vhost.dead_letters.postponer("wide", "source", Message("", "source", header_of(), b""))
    assert postpone is not None
    postpone(lambda: 1 // 0)  # type: ignore[arg-type, return-value]  # raises before it returns
    very_wide.publish("source", b"second", is_persistent=True)
    targets = targets_of(very_wide)
    run_turns(very_wide, lambda: 0)
    assert waiting(targets) == len(targets)


def test_a_clock_that_stands_still_makes_all_drops_in_one_turn() -> None:
    broker = MemoryBroker(clock=FakeClock())
    targets = fanout(broker, "wide", 30)
    source(broker, "wide", x_max_length=1)
    for _ in range(100):
        broker.publish("source")
    broker.advance(0)
    assert waiting(targets) == 99 * 30


# Retries of at-least-once dead letters


@pytest.fixture
def retrying() -> MemoryBroker:
    """A broker with a pending dead letter, whose exchange now exists and has very many queues; one of them is full."""
    broker = MemoryBroker(clock=TurnClock())
    source(broker, "wide", x_queue_type="quorum", x_overflow="reject-publish", x_dead_letter_strategy="at-least-once")
    broker.publish("source", b"m", is_persistent=True)
    recipient = Recipient()
    recipient.consume(broker.vhost.queue("source"))
    recipient.settle(None, DeliveryOutcome.REJECTED, up_to=True)
    recipient.leave()
    fanout(broker, "wide", MOST_QUEUES + 300, x_max_length=1, x_overflow="reject-publish")
    broker.publish("wide7", b"in the way", is_persistent=True)
    broker.commit()
    assert broker.vhost.queue("source").pending_dead_letter_count == 1
    return broker


def wait_for_the_first_retry(broker: MemoryBroker) -> None:
    assert isinstance(broker.clock, TurnClock)
    broker.clock.pass_without_calls(FIRST_RETRY_MS / 1000)


def test_a_retry_for_very_many_queues_is_offered_in_slices(retrying: MemoryBroker) -> None:
    targets, queue = targets_of(retrying), retrying.vhost.queue("source")
    wait_for_the_first_retry(retrying)
    pending: list[int] = []

    def count() -> int:
        pending.append(queue.pending_dead_letter_count)
        return waiting(targets)

    rises = run_turns(retrying, count)
    assert sum(rises) == len(targets) - 1
    assert max(rises) < len(targets) // 2
    assert set(pending) == {1}


def test_a_retry_for_very_many_queues_is_not_repeated_in_those_that_have_the_letter(retrying: MemoryBroker) -> None:
    targets, queue = targets_of(retrying), retrying.vhost.queue("source")
    wait_for_the_first_retry(retrying)
    run_turns(retrying, lambda: 0)
    recipient = Recipient()
    for target in targets:
        assert isinstance(target, Queue)
        recipient.get(target)
        recipient.settle(None, up_to=True)
    assert sorted(set(recipient.bodies)) == [b"in the way", b"m"]
    retrying.clock.advance(LONGEST_RETRY_MS / 1000)
    run_turns(retrying, lambda: 0)
    assert [target.name for target in targets if len(target)] == ["wide7"]
    assert queue.pending_dead_letter_count == 0
    retrying.commit()
    assert retrying.crashed().vhost.queue("source").pending_dead_letter_count == 0


def test_a_crash_within_a_retry_for_very_many_queues_undoes_it(retrying: MemoryBroker) -> None:
    wait_for_the_first_retry(retrying)
    assert isinstance(retrying.clock, TurnClock)
    while waiting(targets_of(retrying)) == 1:
        retrying.clock.turn()
        retrying.commit()
    assert waiting(targets_of(retrying)) < len(targets_of(retrying))
    restarted = retrying.crashed()
    assert waiting(targets_of(restarted)) == 1
    assert restarted.vhost.queue("source").pending_dead_letter_count == 1
    wait_for_the_first_retry(restarted)
    run_turns(restarted, lambda: 0)
    assert [len(queue) for queue in targets_of(restarted)] == [1] * len(targets_of(restarted))


def test_the_source_of_a_retry_may_be_deleted_meanwhile(retrying: MemoryBroker) -> None:
    wait_for_the_first_retry(retrying)
    assert isinstance(retrying.clock, TurnClock)
    while waiting(targets_of(retrying)) == 1:
        retrying.clock.turn()
    retrying.vhost.delete_queue(retrying.vhost.queue("source"))
    run_turns(retrying, lambda: 0)
    assert waiting(targets_of(retrying)) == len(targets_of(retrying))
    retrying.commit()
    restarted = retrying.crashed()
    for queue in targets_of(restarted):
        restarted.vhost.delete_queue(queue)
    run_turns(restarted, lambda: 0)
    restarted.commit()
    assert not restarted.store.held_ids


@pytest.mark.source
def test_a_letter_is_kept_if_an_exception_interrupts_its_retry(
    retrying: MemoryBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError

    wait_for_the_first_retry(retrying)
    with monkeypatch.context() as patch:
        patch.setattr(retrying.vhost.dead_letters, "_take_in", broken)
        run_turns(retrying, lambda: 0)
    assert retrying.vhost.queue("source").pending_dead_letter_count == 1
    retrying.clock.advance(LONGEST_RETRY_MS / 1000)
    run_turns(retrying, lambda: 0)
    assert waiting(targets_of(retrying)) == len(targets_of(retrying))


def test_a_delayed_message_that_a_full_queue_refuses_is_dead_lettered_in_slices() -> None:
    broker = MemoryBroker(clock=TurnClock())
    targets = fanout(broker, "wide", MOST_QUEUES + 300)
    source(broker, "wide", x_max_length=1, x_overflow="reject-publish", x_delayed_delivery=True)
    broker.publish("source", b"in the way", is_persistent=True)
    broker.publish("source", b"late", is_persistent=True, headers={"x-delay": 1000})
    broker.commit()
    pass_a_second(broker)
    require_each_once_in_slices(broker, targets)
