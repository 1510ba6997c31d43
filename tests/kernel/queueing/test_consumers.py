"""Consumer scheduling: highest priority first, round-robin within a priority, only with credit and free output."""

import pytest

from gateway.kernel.errors import AccessRefused
from gateway.kernel.queueing.delivery_outcome import DeliveryOutcome
from gateway.kernel.queueing.queue import Queue
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.testing import MemoryBroker, Received, Recipient


@pytest.fixture
def queue(vhost: VirtualHost) -> Queue:
    return vhost.declare_queue("q")


def publish(broker: MemoryBroker, count: int) -> None:
    for number in range(1, count + 1):
        broker.publish("q", b"%d" % number)


def test_consumers_take_turns(broker: MemoryBroker, queue: Queue) -> None:
    """R82."""
    recipients = [Recipient() for _ in range(3)]
    for recipient in recipients:
        recipient.consume(queue)
    publish(broker, 6)
    assert [recipient.bodies for recipient in recipients] == [[b"1", b"4"], [b"2", b"5"], [b"3", b"6"]]


def test_a_consumer_without_credit_is_skipped_and_rejoins_at_the_end(broker: MemoryBroker, queue: Queue) -> None:
    """R82, R84."""
    limited, other, third = Recipient(), Recipient(), Recipient()
    limited.consume(queue, prefetch=1)
    other.consume(queue)
    third.consume(queue)
    publish(broker, 4)
    assert (limited.bodies, other.bodies, third.bodies) == ([b"1"], [b"2", b"4"], [b"3"])
    limited.settle(1)
    publish(broker, 3)
    assert (limited.bodies[1:], other.bodies[2:], third.bodies[1:]) == ([b"3"], [b"2"], [b"1"])


def test_a_waiting_consumer_is_resumed_once_even_if_reconsidered_repeatedly(broker: MemoryBroker, queue: Queue) -> None:
    waiting, other = Recipient(), Recipient()
    consumer = waiting.consume(queue)
    other.consume(queue)
    waiting.is_open = False
    publish(broker, 2)
    waiting.is_open = True
    for _ in range(3):
        queue.reconsider(consumer)
    publish(broker, 4)
    assert len(waiting.bodies) == 2
    assert len(other.bodies) == 4


def test_a_consumer_cancelled_while_it_waits_gets_no_more_messages(broker: MemoryBroker, queue: Queue) -> None:
    recipient = Recipient()
    consumer = recipient.consume(queue, prefetch=1)
    publish(broker, 2)
    recipient.cancel(consumer)
    recipient.settle(1)
    queue.reconsider(consumer)
    assert recipient.bodies == [b"1"]
    assert len(queue) == 1


def test_a_higher_priority_is_served_first_and_a_lower_one_only_while_it_is_busy(
    broker: MemoryBroker, queue: Queue
) -> None:
    """R92: the order in which consumers were added does not matter."""
    low, high = Recipient(), Recipient()
    low.consume(queue, priority=-1)
    high.consume(queue, prefetch=2, priority=10)
    publish(broker, 4)
    assert (high.bodies, low.bodies) == ([b"1", b"2"], [b"3", b"4"])
    high.settle(1)
    publish(broker, 2)
    assert (high.bodies[2:], low.bodies[2:]) == ([b"1"], [b"2"])


def test_consumers_of_equal_priority_take_turns_among_themselves(broker: MemoryBroker, queue: Queue) -> None:
    """R92."""
    low, first, second = Recipient(), Recipient(), Recipient()
    low.consume(queue)
    first.consume(queue, priority=1)
    second.consume(queue, priority=1)
    publish(broker, 4)
    assert (first.bodies, second.bodies, low.bodies) == ([b"1", b"3"], [b"2", b"4"], [])


def test_a_priority_can_be_used_again_after_its_last_consumer_was_cancelled(broker: MemoryBroker, queue: Queue) -> None:
    low, high = Recipient(), Recipient()
    low.consume(queue)
    for _ in range(2):
        high.cancel(high.consume(queue, priority=5))
    high.consume(queue, priority=5)
    publish(broker, 1)
    assert high.bodies == [b"1"]


def test_a_consumer_with_a_full_output_buffer_is_skipped_until_it_drains(broker: MemoryBroker, queue: Queue) -> None:
    """R92: "blocked by the network"."""
    recipient = Recipient()
    recipient.consume(queue, settles=False)
    recipient.is_open = False
    publish(broker, 2)
    assert (recipient.bodies, len(queue)) == ([], 2)
    recipient.is_open = True
    recipient.resume()
    assert recipient.bodies == [b"1", b"2"]


def test_delivery_stops_when_the_output_buffer_fills_up(broker: MemoryBroker, queue: Queue) -> None:
    class FullAfterOneDelivery(Recipient):
        def _remember(self, received: Received) -> Received:
            self.is_open = False
            return super()._remember(received)

    recipient = FullAfterOneDelivery()
    publish(broker, 3)
    recipient.consume(queue)
    assert recipient.bodies == [b"1"]


def test_two_consumers_may_share_a_queue_and_one_peer_may_consume_from_several(
    broker: MemoryBroker, queue: Queue
) -> None:
    """R149."""
    other = broker.vhost.declare_queue("other")
    both, one = Recipient(), Recipient()
    both.consume(queue)
    both.consume(other)
    one.consume(queue)
    publish(broker, 2)
    broker.publish("other", b"3")
    assert (both.bodies, one.bodies) == ([b"1", b"3"], [b"2"])


def test_an_exclusive_consumer_refuses_other_consumers(queue: Queue) -> None:
    """R97."""
    Recipient().consume(queue, is_exclusive=True)
    with pytest.raises(AccessRefused, match="queue 'q' in vhost '/' in exclusive use"):
        Recipient().consume(queue)


def test_an_exclusive_consumer_is_refused_beside_others(queue: Queue) -> None:
    """R97."""
    Recipient().consume(queue)
    with pytest.raises(AccessRefused, match="in exclusive use"):
        Recipient().consume(queue, is_exclusive=True)


def test_other_consumers_are_accepted_after_an_exclusive_one_was_cancelled(queue: Queue) -> None:
    """R97."""
    first = Recipient()
    first.cancel(first.consume(queue, is_exclusive=True))
    Recipient().consume(queue, is_exclusive=True)
    assert len(queue.consumers) == 1


# Credit


def test_a_prefetch_of_zero_is_unlimited(broker: MemoryBroker, queue: Queue) -> None:
    """R84."""
    recipient = Recipient()
    recipient.consume(queue, prefetch=0)
    publish(broker, 100)
    assert len(recipient.received) == 100


@pytest.mark.parametrize("outcome", DeliveryOutcome)
def test_settling_in_any_way_gives_credit_back(broker: MemoryBroker, queue: Queue, outcome: DeliveryOutcome) -> None:
    """R84."""
    recipient = Recipient()
    recipient.consume(queue, prefetch=1)
    publish(broker, 2)
    assert recipient.bodies == [b"1"]
    recipient.settle(1, outcome)
    assert len(recipient.received) == 2


def test_a_multiple_settlement_gives_back_as_much_credit_as_it_settles(broker: MemoryBroker, queue: Queue) -> None:
    recipient = Recipient()
    recipient.consume(queue, prefetch=3)
    publish(broker, 10)
    recipient.settle(2, up_to=True)
    assert recipient.bodies == [b"1", b"2", b"3", b"4", b"5"]


def test_messages_fetched_with_get_use_no_consumer_credit(broker: MemoryBroker, queue: Queue) -> None:
    recipient = Recipient()
    publish(broker, 2)
    recipient.get(queue)
    recipient.consume(queue, prefetch=1)
    assert recipient.bodies == [b"1", b"2"]


def test_a_consumer_is_limited_by_its_own_and_by_the_shared_prefetch(broker: MemoryBroker, queue: Queue) -> None:
    """R85."""
    recipient = Recipient(prefetch=3)
    recipient.consume(queue, "a", prefetch=2)
    recipient.consume(queue, "b", prefetch=2)
    publish(broker, 5)
    assert [(received.consumer_tag, received.body) for received in recipient.received] == [
        ("a", b"1"),
        ("b", b"2"),
        ("a", b"3"),
    ]


def test_returned_shared_credit_serves_a_waiting_consumer(broker: MemoryBroker, queue: Queue) -> None:
    """R83, R85: the waiting consumer is at another queue."""
    other = broker.vhost.declare_queue("other")
    recipient = Recipient(prefetch=1)
    recipient.consume(queue)
    recipient.consume(other)
    broker.publish("q", b"first")
    broker.publish("other", b"second")
    assert recipient.bodies == [b"first"]
    recipient.settle(1)
    assert recipient.bodies == [b"first", b"second"]


def test_shared_credit_of_a_cancelled_consumer_is_returned_when_it_settles(broker: MemoryBroker, queue: Queue) -> None:
    other = broker.vhost.declare_queue("other")
    recipient = Recipient(prefetch=1)
    cancelled = recipient.consume(queue)
    recipient.consume(other)
    broker.publish("q", b"first")
    broker.publish("other", b"second")
    recipient.cancel(cancelled)
    assert recipient.bodies == [b"first"]
    recipient.settle(1)
    assert recipient.bodies == [b"first", b"second"]
