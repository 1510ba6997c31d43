"""The ledger of unsettled deliveries: tags rise; one tag, or all up to one, can be removed (R87)."""

from collections.abc import Iterator

import pytest

from gateway.kernel.queueing.consumer import Consumer, Outlet, Subscriber
from gateway.kernel.queueing.delivery_outcome import DeliveryOutcome
from gateway.kernel.queueing.ledger import MOST_AT_ONCE, Delivery, Ledger, requeue_all, settlement_steps
from gateway.kernel.queueing.queue import Queue
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.testing import MemoryBroker, Recipient
from tests.clocks import TurnClock


@pytest.fixture
def ledger(broker: MemoryBroker, vhost: VirtualHost) -> Ledger:
    """A ledger with the deliveries 1, 2, 4 and 5; delivery 3 needed no settling."""
    queue = vhost.declare_queue("q")
    ledger = Ledger()
    for number in range(1, 6):
        if number == 3:
            assert ledger.skip_tag() == 3
        else:
            assert add_delivery(ledger, broker, queue) == number
    return ledger


def add_delivery(ledger: Ledger, broker: MemoryBroker, queue: Queue) -> int:
    broker.publish(queue.name)
    entry = queue.take()
    assert entry is not None
    return ledger.add(queue, entry, None)


REMOVALS = [
    #             tag, multiple, removed,      left
    pytest.param(2, False, [2], [1, 4, 5], id="R87: one"),
    pytest.param(4, True, [1, 2, 4], [5], id="R87: all up to one"),
    pytest.param(0, True, [1, 2, 4, 5], [], id="R87: zero and multiple means all"),
    pytest.param(0, False, None, [1, 2, 4, 5], id="R87: zero alone is unknown"),
    pytest.param(3, False, None, [1, 2, 4, 5], id="R87: a tag that needed no settling is unknown"),
    pytest.param(3, True, None, [1, 2, 4, 5], id="R87: multiple up to an unknown tag"),
    pytest.param(6, False, None, [1, 2, 4, 5], id="R87: a tag not yet used is unknown"),
    pytest.param(6, True, None, [1, 2, 4, 5], id="R87: multiple up to a tag not yet used"),
]


@pytest.mark.parametrize(("tag", "is_multiple", "removed", "left"), REMOVALS)
def test_a_delivery_is_removed_by_its_tag(
    ledger: Ledger, tag: int, is_multiple: bool, removed: list[int] | None, left: list[int]
) -> None:
    deliveries = ledger.remove(tag, is_multiple)
    assert (None if deliveries is None else [delivery.tag for delivery in deliveries]) == removed
    assert [delivery.tag for delivery in ledger] == left


def test_a_delivery_is_removed_once(ledger: Ledger) -> None:
    ledger.remove(2, False)
    assert ledger.remove(2, False) is None
    assert ledger.remove(2, True) is None


def test_tags_continue_after_everything_was_settled(ledger: Ledger, broker: MemoryBroker, vhost: VirtualHost) -> None:
    ledger.clear()
    assert add_delivery(ledger, broker, vhost.queue("q")) == 6
    removed = ledger.remove(6, True)
    assert removed is not None
    assert len(removed) == 1


def test_restored_deliveries_return_to_their_old_order(ledger: Ledger) -> None:
    """For the rollback of a transaction (R115)."""
    removed = ledger.remove(2, True)
    assert removed is not None
    ledger.restore(removed)
    assert [delivery.tag for delivery in ledger] == [1, 2, 4, 5]
    again = ledger.remove(4, True)
    assert again is not None
    assert [delivery.tag for delivery in again] == [1, 2, 4]


def test_a_delivery_is_recorded_and_counted(broker: MemoryBroker, vhost: VirtualHost) -> None:
    queue = vhost.declare_queue("q")
    broker.publish("q")
    entry = queue.take()
    consumer = Consumer(queue, "tag", Subscriber(), Outlet(), needs_settling=True)
    ledger = Ledger()
    assert [ledger.deliver(consumer, entry, True), ledger.deliver(consumer, None, False)] == [1, 2]
    assert [(each.tag, each.entry, each.consumer) for each in ledger] == [(1, entry, consumer)]
    counters = consumer.counters
    assert (counters.deliver, counters.deliver_no_ack, counters.redeliver) == (1, 1, 1)


def test_no_message_is_requeued_before_the_queues_of_very_many_deliveries_are_paused(
    broker: MemoryBroker, vhost: VirtualHost
) -> None:
    first, second, ledger = vhost.declare_queue("first"), vhost.declare_queue("second"), Ledger()
    for _ in range(2 * MOST_AT_ONCE):
        add_delivery(ledger, broker, first)
    for _ in range(2):
        add_delivery(ledger, broker, second)
    Recipient().consume(second)
    deliveries, looks = ledger.clear(), 0
    steps = settlement_steps(deliveries, DeliveryOutcome.REQUEUED)
    while not len(first):
        next(steps)
        looks += 1
    assert looks == 3  # two to find the queues, then the first messages
    broker.publish("second")
    for _ in steps:
        pass
    assert (len(first), deliveries) == (2 * MOST_AT_ONCE, [])
    assert second.counters.deliver == 3
    assert second.counters.redeliver == 2


def test_all_deliveries_can_be_removed_in_parts(broker: MemoryBroker, vhost: VirtualHost) -> None:
    queue, ledger, count = vhost.declare_queue("q"), Ledger(), 3 * MOST_AT_ONCE + 1
    for _ in range(count):
        add_delivery(ledger, broker, queue)
    parts = ledger.in_parts()
    assert not len(ledger)
    assert add_delivery(ledger, broker, queue) == count + 1
    assert [delivery.tag for part in parts for delivery in part] == list(range(1, count + 1))
    assert [delivery.tag for delivery in ledger] == [count + 1]


def test_very_many_deliveries_are_read_in_several_turns_while_their_queue_is_paused() -> None:
    clock = TurnClock(is_ticking=False)
    broker = MemoryBroker(clock=clock)
    queue, ledger, count = broker.vhost.declare_queue("q"), Ledger(), 12 * MOST_AT_ONCE
    for _ in range(count):
        add_delivery(ledger, broker, queue)
    recipient, read = Recipient(), list[int]()
    recipient.consume(queue)

    def parts() -> Iterator[list[Delivery]]:
        for part in ledger.in_parts():
            read.append(len(part))
            yield part

    clock.is_ticking = True
    requeue_all(parts())
    assert MOST_AT_ONCE < sum(read) < count
    broker.publish("q")
    assert not queue.counters.deliver
    clock.is_ticking = False
    while clock.turn():
        pass
    assert sum(read) == count
    assert (queue.counters.deliver, queue.counters.redeliver) == (count + 1, count)
    positions = [delivery.entry.position for delivery in recipient.ledger]
    assert positions == sorted(positions)
