"""Consumers with selections: each gets the next matching message, in order, and other messages wait."""

from collections.abc import Callable

import pytest

from gateway.kernel.backlog.ready import RUN_LENGTH, SEGMENT_LENGTH
from gateway.kernel.journal.changes import Discarded
from gateway.kernel.messages.message import Message, Properties, Value
from gateway.kernel.messages.native_header import native_header
from gateway.kernel.queueing.delivery_outcome import DeliveryOutcome
from gateway.kernel.queueing.queue import Queue
from gateway.testing import MemoryBroker, Recipient
from tests.kernel.broker.test_slices import TickingClock
from tests.kernel.word_selection import WordSelection


@pytest.fixture
def queue(broker: MemoryBroker) -> Queue:
    return broker.vhost.declare_queue("q", is_durable=True)


def publish(broker: MemoryBroker, *bodies: bytes, is_persistent: bool = True) -> None:
    for body in bodies:
        broker.publish("q", body, is_persistent=is_persistent)


def waiting(queue: Queue) -> list[bytes]:
    return [entry.message.body for entry in sorted(queue.ready.resident(), key=lambda entry: entry.position)]


def test_a_message_goes_to_a_consumer_whose_selection_matches(broker: MemoryBroker, queue: Queue) -> None:
    red, blue = Recipient(), Recipient()
    red.consume(queue, selection=WordSelection(b"red"))
    blue.consume(queue, selection=WordSelection(b"blue"))
    publish(broker, b"red 1", b"blue 2", b"blue 3", b"red 4")
    assert (red.bodies, blue.bodies) == ([b"red 1", b"red 4"], [b"blue 2", b"blue 3"])
    assert (len(queue), queue.unsettled) == (0, 4)


def test_an_unmatched_message_waits_and_later_ones_overtake_it(broker: MemoryBroker, queue: Queue) -> None:
    recipient = Recipient()
    recipient.consume(queue, selection=WordSelection(b"red"))
    publish(broker, b"green 1", b"red 2", b"green 3", b"red 4")
    assert recipient.bodies == [b"red 2", b"red 4"]
    assert waiting(queue) == [b"green 1", b"green 3"]


def test_a_new_consumer_gets_matching_messages_oldest_first(broker: MemoryBroker, queue: Queue) -> None:
    publish(broker, b"green 1", b"red 2", b"green 3", b"red 4")
    recipient, other = Recipient(), Recipient()
    recipient.consume(queue, selection=WordSelection(b"red"))
    assert recipient.bodies == [b"red 2", b"red 4"]
    other.consume(queue)
    assert other.bodies == [b"green 1", b"green 3"]


def test_a_consumer_with_new_credit_continues_its_search(broker: MemoryBroker, queue: Queue) -> None:
    selection = WordSelection(b"red")
    recipient = Recipient()
    recipient.consume(queue, prefetch=1, selection=selection)
    publish(broker, b"red 1", b"green 2", b"green 3", b"red 4", b"red 5")
    recipient.settle(1)
    recipient.settle(2)
    assert recipient.bodies == [b"red 1", b"red 4", b"red 5"]
    assert selection.calls == 5


@pytest.mark.parametrize("settles", [True, False])
def test_consumers_of_equal_priority_take_turns_for_new_messages(
    broker: MemoryBroker, queue: Queue, settles: bool
) -> None:
    one, two = Recipient(), Recipient()
    one.consume(queue, settles=settles, selection=WordSelection(b"red", b"green"))
    two.consume(queue, settles=settles, selection=WordSelection(b"red"))
    publish(broker, b"red 1", b"red 2", b"green 3", b"red 4", b"red 5")
    assert (one.bodies, two.bodies) == ([b"red 1", b"green 3", b"red 5"], [b"red 2", b"red 4"])


def test_consumers_of_equal_priority_take_turns_for_waiting_messages(broker: MemoryBroker, queue: Queue) -> None:
    holder, one, two = Recipient(), Recipient(), Recipient()
    holder.consume(queue, prefetch=4)
    publish(broker, b"red 1", b"green 2", b"red 3", b"red 4")
    one.consume(queue, selection=WordSelection(b"red", b"green"))
    two.consume(queue, selection=WordSelection(b"red"))
    holder.leave()
    assert (one.bodies, two.bodies) == ([b"red 1", b"green 2", b"red 4"], [b"red 3"])


def test_a_consumer_without_selection_takes_its_turn(broker: MemoryBroker, queue: Queue) -> None:
    everything, red = Recipient(), Recipient()
    everything.consume(queue)
    red.consume(queue, selection=WordSelection(b"red"))
    publish(broker, b"red 1", b"red 2", b"green 3", b"red 4")
    assert (everything.bodies, red.bodies) == ([b"red 1", b"green 3"], [b"red 2", b"red 4"])


def test_a_matching_consumer_of_higher_priority_is_served_first(broker: MemoryBroker, queue: Queue) -> None:
    publish(broker, b"red 1", b"green 2", b"red 3", b"red 4")
    low, high = Recipient(), Recipient()
    high.is_open = False
    high.consume(queue, prefetch=2, priority=1, selection=WordSelection(b"red"))
    high.is_open = True
    queue.reconsider(high.consumers[0])
    low.consume(queue)
    publish(broker, b"red 5")
    assert (high.bodies, low.bodies) == ([b"red 1", b"red 3"], [b"green 2", b"red 4", b"red 5"])


def test_a_requeued_message_is_examined_again_at_its_position(broker: MemoryBroker, queue: Queue) -> None:
    publish(broker, b"red 1", b"red 2", b"red 3")
    everything, red = Recipient(), Recipient()
    everything.consume(queue, prefetch=2)
    red.consume(queue, prefetch=1, selection=WordSelection(b"red"))
    everything.leave()
    red.settle(1)
    red.settle(2)
    assert red.bodies == [b"red 3", b"red 1", b"red 2"]
    assert [received.redelivered for received in red.received] == [False, True, True]


def test_an_older_unexamined_message_comes_before_a_requeued_one(broker: MemoryBroker, queue: Queue) -> None:
    both, red = Recipient(), Recipient()
    both.consume(queue, prefetch=1, priority=1, selection=WordSelection(b"red", b"green"))
    red.consume(queue, selection=WordSelection(b"red"))
    publish(broker, b"green 1", b"green 2", b"red 3")
    red.leave()
    for tag in (1, 2):
        both.settle(tag)
    assert both.bodies == [b"green 1", b"green 2", b"red 3"]


def test_messages_that_arrive_while_a_consumer_has_no_capacity_are_examined_later(
    broker: MemoryBroker, queue: Queue
) -> None:
    recipient = Recipient()
    recipient.consume(queue, selection=WordSelection(b"red"))
    publish(broker, b"green 1")
    recipient.is_open = False
    publish(broker, b"red 2")
    recipient.is_open = True
    recipient.resume()
    assert recipient.bodies == [b"red 2"]


def test_a_message_requeued_before_the_first_selection_hides_no_new_message(broker: MemoryBroker, queue: Queue) -> None:
    everything, red = Recipient(), Recipient()
    everything.consume(queue, prefetch=1)
    publish(broker, b"red 1")
    everything.settle(1, DeliveryOutcome.REQUEUED)
    red.consume(queue, selection=WordSelection(b"red"))
    publish(broker, b"red 2")
    assert (everything.bodies, red.bodies) == ([b"red 1", b"red 1"], [b"red 2"])


def test_a_selection_may_use_the_delivery_count(broker: MemoryBroker, queue: Queue) -> None:
    recipient = Recipient()
    recipient.consume(queue, selection=WordSelection(b"red", first_only=True))
    publish(broker, b"red 1")
    recipient.settle(1, DeliveryOutcome.REQUEUED)
    assert recipient.bodies == [b"red 1"]
    assert waiting(queue) == [b"red 1"]


def test_only_requeued_messages_are_examined_again(broker: MemoryBroker, queue: Queue) -> None:
    nothing = WordSelection(b"nothing")
    idle, busy = Recipient(), Recipient()
    idle.consume(queue, selection=nothing)
    publish(broker, b"red 0", *(b"green %d" % number for number in range(1000)))
    busy.consume(queue, prefetch=1, selection=WordSelection(b"red"))
    assert nothing.calls == 1001
    for tag in range(1, 51):
        busy.settle(tag, DeliveryOutcome.REQUEUED)
    assert nothing.calls == 1051
    publish(broker, *(b"green %d" % number for number in range(50)))
    assert nothing.calls == 1101


def test_selective_dispatch_ends_with_the_last_selection(broker: MemoryBroker, queue: Queue) -> None:
    red, everything = Recipient(), Recipient()
    everything.is_open = False
    red.consume(queue, selection=WordSelection(b"red"))
    everything.consume(queue)
    publish(broker, b"green 1")
    red.leave()
    assert queue.selecting is None
    everything.is_open = True
    everything.resume()
    publish(broker, b"red 2")
    assert everything.bodies == [b"green 1", b"red 2"]


# Combined with other features of queues


def test_a_single_active_consumer_leaves_unmatched_messages(broker: MemoryBroker) -> None:
    queue = broker.vhost.declare_queue("q", arguments={"x-single-active-consumer": True})
    first, second = Recipient(), Recipient()
    first.consume(queue, selection=WordSelection(b"red"))
    second.consume(queue, selection=WordSelection(b"green"))
    publish(broker, b"green 1", b"red 2")
    assert (first.bodies, second.bodies) == ([b"red 2"], [])
    first.leave()
    assert second.bodies == [b"green 1"]


def test_matching_messages_are_delivered_by_priority_before_age(broker: MemoryBroker) -> None:
    queue = broker.vhost.declare_queue("q", arguments={"x-max-priority": 9})
    for number, priority in enumerate([0, 5, 0, 9, 5]):
        header = native_header(Properties(priority=priority))
        queue.offer(Message("", "q", header, (b"red %d" if number else b"green %d") % priority))
    recipient = Recipient()
    recipient.consume(queue, prefetch=1, selection=WordSelection(b"red"))
    queue.offer(Message("", "q", native_header(Properties(priority=7)), b"red 7"))
    for tag in range(1, 5):
        recipient.settle(tag)
    assert recipient.bodies == [b"red 9", b"red 7", b"red 5", b"red 5", b"red 0"]
    assert waiting(queue) == [b"green 0"]


@pytest.mark.parametrize("arguments", [{"x-message-ttl": 1000}, {"x-message-ttl": 1000, "x-max-priority": 2}])
def test_an_expired_message_is_not_delivered(broker: MemoryBroker, arguments: dict[str, Value]) -> None:
    queue = broker.vhost.declare_queue("q", arguments=arguments)
    recipient = Recipient()
    recipient.is_open = False
    recipient.consume(queue, selection=WordSelection(b"red"))
    publish(broker, b"green 1", b"red 2")
    broker.clock.advance(2)  # within the same turn
    recipient.is_open = True
    broker.end_turn()
    publish(broker, b"red 3")
    recipient.resume()
    assert recipient.bodies == [b"red 3"]
    broker.advance(0)
    assert len(queue) == 0


def test_an_expired_message_is_dropped_when_examined(broker: MemoryBroker) -> None:
    queue = broker.vhost.declare_queue("q")
    for body, expiration in ((b"green 1", None), (b"red 2", "1000"), (b"green 3", "1000")):
        properties = Properties(expiration=expiration)
        queue.offer(Message("", "q", native_header(properties), body))
    broker.advance(2)
    assert len(queue) == 3
    recipient = Recipient()
    recipient.consume(queue, selection=WordSelection(b"red"))
    assert recipient.bodies == []
    assert waiting(queue) == [b"green 1"]


def test_unmatched_messages_count_for_the_length_limit(broker: MemoryBroker) -> None:
    queue = broker.vhost.declare_queue("q", arguments={"x-max-length": 2})
    recipient = Recipient()
    recipient.consume(queue, selection=WordSelection(b"red"))
    publish(broker, b"green 1", b"green 2", b"red 3", b"green 4")
    assert recipient.bodies == [b"red 3"]
    assert waiting(queue) == [b"green 2", b"green 4"]


def test_the_delivery_limit_is_enforced(broker: MemoryBroker) -> None:
    queue = broker.vhost.declare_queue(
        "q", arguments={"x-delivery-limit": 1, "x-queue-type": "quorum"}, is_durable=True
    )
    recipient = Recipient()
    recipient.consume(queue, selection=WordSelection(b"red"))
    publish(broker, b"green 1", b"red 2")
    recipient.settle(1, DeliveryOutcome.REQUEUED)
    recipient.settle(2, DeliveryOutcome.REQUEUED)
    assert recipient.bodies == [b"red 2", b"red 2"]
    assert waiting(queue) == [b"green 1"]


def test_a_message_dead_lettered_to_its_own_queue_is_examined(broker: MemoryBroker) -> None:
    arguments: dict[str, Value] = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q"}
    queue = broker.vhost.declare_queue("q", arguments=arguments)
    recipient = Recipient()
    recipient.consume(queue, prefetch=1, selection=WordSelection(b"red"))
    publish(broker, b"red 1", b"green 2", b"red 3")
    recipient.settle(1, DeliveryOutcome.REJECTED)
    recipient.settle(2)
    assert recipient.bodies == [b"red 1", b"red 3", b"red 1"]


# Long queues


@pytest.mark.parametrize("is_persistent", [True, False], ids=["persistent", "transient"])
def test_a_long_queue_is_searched_on_disk(is_persistent: bool, living_messages: Callable[[], int]) -> None:
    broker = MemoryBroker(resident_messages=100)
    queue = broker.vhost.declare_queue("q", is_durable=True)
    bodies = [b"red %d" % number if number % 300 == 299 else b"green %d" % number for number in range(5000)]
    publish(broker, *bodies, is_persistent=is_persistent)
    broker.commit()
    recipient = Recipient()
    recipient.consume(queue, prefetch=1, selection=WordSelection(b"red"))
    for tag in range(1, 17):
        recipient.settle(tag)
        assert living_messages() <= 2 * RUN_LENGTH + SEGMENT_LENGTH
    assert recipient.bodies == [body for body in bodies if body.startswith(b"red")]
    assert len(queue) == len(bodies) - len(recipient.bodies)
    other = Recipient()
    other.consume(queue, settles=False)
    assert other.bodies == [body for body in bodies if body.startswith(b"green")]
    broker.commit()
    assert not broker.store.held_ids - {delivery.entry.message.id for delivery in recipient.ledger}


@pytest.mark.parametrize("resident", [100, 100_000], ids=["paged", "in memory"])
def test_a_long_queue_is_searched_in_slices(resident: int) -> None:
    clock = TickingClock()
    broker = MemoryBroker(clock=clock, resident_messages=resident)
    queue = broker.vhost.declare_queue("q")
    publish(broker, *(b"green %d" % number for number in range(3000)), b"red last", is_persistent=False)
    selection = WordSelection(b"red")
    recipient, quick = Recipient(), Recipient()
    recipient.consume(queue, selection=selection)
    assert 0 < selection.calls < 100, "only the first slice is done at once"
    quick.consume(queue, prefetch=1)
    clock.advance(0)
    assert (recipient.bodies, quick.bodies) == ([b"red last"], [b"green 0"])
    assert selection.calls <= 3001


def test_a_new_message_does_not_overtake_unexamined_ones() -> None:
    clock = TickingClock()
    broker = MemoryBroker(clock=clock)
    queue = broker.vhost.declare_queue("q")
    publish(broker, *(b"green %d" % number for number in range(500)), b"red old")
    recipient, quick = Recipient(), Recipient()
    recipient.consume(queue, selection=WordSelection(b"red"))
    publish(broker, b"red new")
    quick.consume(queue, prefetch=1, selection=WordSelection(b"blue"))
    publish(broker, b"blue 1")
    clock.advance(0)
    assert recipient.bodies == [b"red old", b"red new"]
    assert quick.bodies == [b"blue 1"]


def test_a_queue_is_in_memory_again_once_it_is_short() -> None:
    broker = MemoryBroker(resident_messages=100)
    queue = broker.vhost.declare_queue("q")
    publish(broker, *(b"red %d" % number for number in range(1000)))
    recipient = Recipient()
    recipient.consume(queue, settles=False, selection=WordSelection(b"red"))
    written = queue.disk_writes
    publish(broker, *(b"green %d" % number for number in range(150)))
    assert (len(recipient.bodies), queue.disk_writes) == (1000, written)
    assert len(waiting(queue)) == 150


def test_a_search_ends_with_its_consumer_or_its_queue() -> None:
    clock = TickingClock()
    broker = MemoryBroker(clock=clock)
    queue = broker.vhost.declare_queue("q")
    publish(broker, *(b"green %d" % number for number in range(1000)))
    gone, stays = WordSelection(b"red"), WordSelection(b"red")
    first, second = Recipient(), Recipient()
    first.consume(queue, selection=gone)
    first.leave()
    before = gone.calls
    clock.advance(0)
    assert gone.calls == before
    second.consume(queue, selection=stays)
    broker.vhost.delete_queue(queue)
    before = stays.calls
    clock.advance(0)
    assert stays.calls == before


@pytest.mark.volume
def test_each_message_is_examined_once_even_without_a_match(broker: MemoryBroker, queue: Queue) -> None:
    nothing = WordSelection(b"nothing")
    Recipient().consume(queue, selection=nothing)
    publish(broker, *(b"green %d" % number for number in range(20_000)), is_persistent=False)
    assert nothing.calls == 20_000


def test_a_lost_content_does_not_stop_a_search() -> None:
    broker = MemoryBroker(resident_messages=10)
    broker.vhost.declare_queue("q", is_durable=True)
    publish(broker, *(b"red %d" % number for number in range(60)))
    broker.commit()
    restarted = broker.crashed()
    restarted.store.append([Discarded(id) for id in sorted(restarted.store.held_ids)[20:40]])
    restarted.store.commit()
    recipient = Recipient()
    recipient.consume(restarted.vhost.queue("q"), selection=WordSelection(b"red"))
    assert recipient.bodies == [b"red %d" % number for number in (*range(20), *range(40, 60))]
    assert len(restarted.vhost.queue("q")) == 0
