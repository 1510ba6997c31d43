"""Consumers that want certain messages only: each gets the next one it wants, in order, and the others wait."""

from collections.abc import Callable

import pytest

from gateway.kernel.backlog.ready import RUN_LENGTH, SEGMENT_LENGTH
from gateway.kernel.journal.changes import Discarded
from gateway.kernel.messages.message import Message, Properties, Value
from gateway.kernel.messages.native_header import plain_header
from gateway.kernel.queueing.queue import DeliveryOutcome, Queue
from gateway.testing import MemoryBroker, Recipient
from tests.kernel.test_slices import TickingClock
from tests.kernel.wanting import Wanting


@pytest.fixture
def queue(broker: MemoryBroker) -> Queue:
    return broker.vhost.declare_queue("q", is_durable=True)


def publish(broker: MemoryBroker, *bodies: bytes, is_persistent: bool = True) -> None:
    for body in bodies:
        broker.publish("q", body, is_persistent=is_persistent)


def waiting(queue: Queue) -> list[bytes]:
    return [entry.message.body for entry in sorted(queue.ready.resident(), key=lambda entry: entry.position)]


def test_a_message_goes_to_who_wants_it(broker: MemoryBroker, queue: Queue) -> None:
    red, blue = Recipient(), Recipient()
    red.consume(queue, selection=Wanting(b"red"))
    blue.consume(queue, selection=Wanting(b"blue"))
    publish(broker, b"red 1", b"blue 2", b"blue 3", b"red 4")
    assert (red.bodies, blue.bodies) == ([b"red 1", b"red 4"], [b"blue 2", b"blue 3"])
    assert (len(queue), queue.unsettled) == (0, 4)


def test_what_nobody_wants_waits_and_others_go_past_it(broker: MemoryBroker, queue: Queue) -> None:
    recipient = Recipient()
    recipient.consume(queue, selection=Wanting(b"red"))
    publish(broker, b"green 1", b"red 2", b"green 3", b"red 4")
    assert recipient.bodies == [b"red 2", b"red 4"]
    assert waiting(queue) == [b"green 1", b"green 3"]


def test_who_comes_gets_what_it_wants_from_the_oldest_on(broker: MemoryBroker, queue: Queue) -> None:
    publish(broker, b"green 1", b"red 2", b"green 3", b"red 4")
    recipient, other = Recipient(), Recipient()
    recipient.consume(queue, selection=Wanting(b"red"))
    assert recipient.bodies == [b"red 2", b"red 4"]
    other.consume(queue)
    assert other.bodies == [b"green 1", b"green 3"]


def test_who_has_credit_again_goes_on_where_it_was(broker: MemoryBroker, queue: Queue) -> None:
    wanting = Wanting(b"red")
    recipient = Recipient()
    recipient.consume(queue, prefetch=1, selection=wanting)
    publish(broker, b"red 1", b"green 2", b"green 3", b"red 4", b"red 5")
    recipient.settle(1)
    recipient.settle(2)
    assert recipient.bodies == [b"red 1", b"red 4", b"red 5"]
    assert wanting.asked == 5


@pytest.mark.parametrize("settles", [True, False])
def test_equals_take_turns_at_what_both_want(broker: MemoryBroker, queue: Queue, settles: bool) -> None:
    one, two = Recipient(), Recipient()
    one.consume(queue, settles=settles, selection=Wanting(b"red", b"green"))
    two.consume(queue, settles=settles, selection=Wanting(b"red"))
    publish(broker, b"red 1", b"red 2", b"green 3", b"red 4", b"red 5")
    assert (one.bodies, two.bodies) == ([b"red 1", b"green 3", b"red 5"], [b"red 2", b"red 4"])


def test_equals_take_turns_at_what_waited(broker: MemoryBroker, queue: Queue) -> None:
    holder, one, two = Recipient(), Recipient(), Recipient()
    holder.consume(queue, prefetch=4)
    publish(broker, b"red 1", b"green 2", b"red 3", b"red 4")
    one.consume(queue, selection=Wanting(b"red", b"green"))
    two.consume(queue, selection=Wanting(b"red"))
    holder.leave()
    assert (one.bodies, two.bodies) == ([b"red 1", b"green 2", b"red 4"], [b"red 3"])


def test_one_that_wants_everything_has_its_turn_among_them(broker: MemoryBroker, queue: Queue) -> None:
    everything, red = Recipient(), Recipient()
    everything.consume(queue)
    red.consume(queue, selection=Wanting(b"red"))
    publish(broker, b"red 1", b"red 2", b"green 3", b"red 4")
    assert (everything.bodies, red.bodies) == ([b"red 1", b"green 3"], [b"red 2", b"red 4"])


def test_higher_priority_goes_first_if_it_wants_the_message(broker: MemoryBroker, queue: Queue) -> None:
    publish(broker, b"red 1", b"green 2", b"red 3", b"red 4")
    low, high = Recipient(), Recipient()
    high.is_open = False
    high.consume(queue, prefetch=2, priority=1, selection=Wanting(b"red"))
    high.is_open = True
    queue.reconsider(high.consumers[0])
    low.consume(queue)
    publish(broker, b"red 5")
    assert (high.bodies, low.bodies) == ([b"red 1", b"red 3"], [b"green 2", b"red 4", b"red 5"])


def test_a_message_that_comes_back_is_looked_at_again_in_its_place(broker: MemoryBroker, queue: Queue) -> None:
    publish(broker, b"red 1", b"red 2", b"red 3")
    everything, red = Recipient(), Recipient()
    everything.consume(queue, prefetch=2)
    red.consume(queue, prefetch=1, selection=Wanting(b"red"))
    everything.leave()
    red.settle(1)
    red.settle(2)
    assert red.bodies == [b"red 3", b"red 1", b"red 2"]
    assert [received.redelivered for received in red.received] == [False, True, True]


def test_an_older_one_that_it_has_not_looked_at_goes_before_one_that_comes_back(
    broker: MemoryBroker, queue: Queue
) -> None:
    both, red = Recipient(), Recipient()
    both.consume(queue, prefetch=1, priority=1, selection=Wanting(b"red", b"green"))
    red.consume(queue, selection=Wanting(b"red"))
    publish(broker, b"green 1", b"green 2", b"red 3")
    red.leave()
    for tag in (1, 2):
        both.settle(tag)
    assert both.bodies == [b"green 1", b"green 2", b"red 3"]


def test_what_comes_while_it_cannot_have_any_is_looked_at_later(broker: MemoryBroker, queue: Queue) -> None:
    recipient = Recipient()
    recipient.consume(queue, selection=Wanting(b"red"))
    publish(broker, b"green 1")
    recipient.is_open = False
    publish(broker, b"red 2")
    recipient.is_open = True
    recipient.resume()
    assert recipient.bodies == [b"red 2"]


def test_what_came_back_before_anybody_selected_hides_nothing_new(broker: MemoryBroker, queue: Queue) -> None:
    everything, red = Recipient(), Recipient()
    everything.consume(queue, prefetch=1)
    publish(broker, b"red 1")
    everything.settle(1, DeliveryOutcome.REQUEUED)
    red.consume(queue, selection=Wanting(b"red"))
    publish(broker, b"red 2")
    assert (everything.bodies, red.bodies) == ([b"red 1", b"red 1"], [b"red 2"])


def test_a_selection_may_ask_how_often_a_message_was_delivered(broker: MemoryBroker, queue: Queue) -> None:
    recipient = Recipient()
    recipient.consume(queue, selection=Wanting(b"red", first_only=True))
    publish(broker, b"red 1")
    recipient.settle(1, DeliveryOutcome.REQUEUED)
    assert recipient.bodies == [b"red 1"]
    assert waiting(queue) == [b"red 1"]


def test_of_what_came_back_the_others_are_asked_and_of_the_rest_nobody_again(
    broker: MemoryBroker, queue: Queue
) -> None:
    nothing = Wanting(b"nothing")
    idle, busy = Recipient(), Recipient()
    idle.consume(queue, selection=nothing)
    publish(broker, b"red 0", *(b"green %d" % number for number in range(1000)))
    busy.consume(queue, prefetch=1, selection=Wanting(b"red"))
    assert nothing.asked == 1001
    for tag in range(1, 51):
        busy.settle(tag, DeliveryOutcome.REQUEUED)
    assert nothing.asked == 1051
    publish(broker, *(b"green %d" % number for number in range(50)))
    assert nothing.asked == 1101


def test_it_ends_with_the_last_that_selects(broker: MemoryBroker, queue: Queue) -> None:
    red, everything = Recipient(), Recipient()
    everything.is_open = False
    red.consume(queue, selection=Wanting(b"red"))
    everything.consume(queue)
    publish(broker, b"green 1")
    red.leave()
    assert queue.selecting is None
    everything.is_open = True
    everything.resume()
    publish(broker, b"red 2")
    assert everything.bodies == [b"green 1", b"red 2"]


# With what queues can besides


def test_a_single_active_consumer_leaves_what_it_does_not_want(broker: MemoryBroker) -> None:
    queue = broker.vhost.declare_queue("q", arguments={"x-single-active-consumer": True})
    first, second = Recipient(), Recipient()
    first.consume(queue, selection=Wanting(b"red"))
    second.consume(queue, selection=Wanting(b"green"))
    publish(broker, b"green 1", b"red 2")
    assert (first.bodies, second.bodies) == ([b"red 2"], [])
    first.leave()
    assert second.bodies == [b"green 1"]


def test_priorities_of_messages_come_before_their_age(broker: MemoryBroker) -> None:
    queue = broker.vhost.declare_queue("q", arguments={"x-max-priority": 9})
    for number, priority in enumerate([0, 5, 0, 9, 5]):
        header = plain_header(Properties(priority=priority))
        queue.offer(Message("", "q", header, (b"red %d" if number else b"green %d") % priority))
    recipient = Recipient()
    recipient.consume(queue, prefetch=1, selection=Wanting(b"red"))
    queue.offer(Message("", "q", plain_header(Properties(priority=7)), b"red 7"))
    for tag in range(1, 5):
        recipient.settle(tag)
    assert recipient.bodies == [b"red 9", b"red 7", b"red 5", b"red 5", b"red 0"]
    assert waiting(queue) == [b"green 0"]


@pytest.mark.parametrize("arguments", [{"x-message-ttl": 1000}, {"x-message-ttl": 1000, "x-max-priority": 2}])
def test_nobody_gets_what_has_expired(broker: MemoryBroker, arguments: dict[str, Value]) -> None:
    queue = broker.vhost.declare_queue("q", arguments=arguments)
    recipient = Recipient()
    recipient.is_open = False
    recipient.consume(queue, selection=Wanting(b"red"))
    publish(broker, b"green 1", b"red 2")
    broker.clock.advance(2)  # within this turn
    recipient.is_open = True
    broker.end_turn()
    publish(broker, b"red 3")
    recipient.resume()
    assert recipient.bodies == [b"red 3"]
    broker.advance(0)
    assert len(queue) == 0


def test_an_expired_message_behind_one_that_lasts_is_dropped_when_met(broker: MemoryBroker) -> None:
    queue = broker.vhost.declare_queue("q")
    for body, expiration in ((b"green 1", None), (b"red 2", "1000"), (b"green 3", "1000")):
        properties = Properties(expiration=expiration)
        queue.offer(Message("", "q", plain_header(properties), body))
    broker.advance(2)
    assert len(queue) == 3
    recipient = Recipient()
    recipient.consume(queue, selection=Wanting(b"red"))
    assert recipient.bodies == []
    assert waiting(queue) == [b"green 1"]


def test_a_limit_counts_what_nobody_wants(broker: MemoryBroker) -> None:
    queue = broker.vhost.declare_queue("q", arguments={"x-max-length": 2})
    recipient = Recipient()
    recipient.consume(queue, selection=Wanting(b"red"))
    publish(broker, b"green 1", b"green 2", b"red 3", b"green 4")
    assert recipient.bodies == [b"red 3"]
    assert waiting(queue) == [b"green 2", b"green 4"]


def test_a_delivery_limit_holds(broker: MemoryBroker) -> None:
    queue = broker.vhost.declare_queue(
        "q", arguments={"x-delivery-limit": 1, "x-queue-type": "quorum"}, is_durable=True
    )
    recipient = Recipient()
    recipient.consume(queue, selection=Wanting(b"red"))
    publish(broker, b"green 1", b"red 2")
    recipient.settle(1, DeliveryOutcome.REQUEUED)
    recipient.settle(2, DeliveryOutcome.REQUEUED)
    assert recipient.bodies == [b"red 2", b"red 2"]
    assert waiting(queue) == [b"green 1"]


def test_a_dead_letter_that_comes_back_to_its_queue_is_looked_at_too(broker: MemoryBroker) -> None:
    arguments: dict[str, Value] = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q"}
    queue = broker.vhost.declare_queue("q", arguments=arguments)
    recipient = Recipient()
    recipient.consume(queue, prefetch=1, selection=Wanting(b"red"))
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
    recipient.consume(queue, prefetch=1, selection=Wanting(b"red"))
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
def test_a_long_queue_is_searched_bit_by_bit(resident: int) -> None:
    clock = TickingClock()
    broker = MemoryBroker(clock=clock, resident_messages=resident)
    queue = broker.vhost.declare_queue("q")
    publish(broker, *(b"green %d" % number for number in range(3000)), b"red last", is_persistent=False)
    wanting = Wanting(b"red")
    recipient, quick = Recipient(), Recipient()
    recipient.consume(queue, selection=wanting)
    assert 0 < wanting.asked < 100, "the first slice is done at once, and no more"
    quick.consume(queue, prefetch=1)
    clock.advance(0)
    assert (recipient.bodies, quick.bodies) == ([b"red last"], [b"green 0"])
    assert wanting.asked <= 3001


def test_nothing_new_overtakes_what_is_still_to_be_looked_at() -> None:
    clock = TickingClock()
    broker = MemoryBroker(clock=clock)
    queue = broker.vhost.declare_queue("q")
    publish(broker, *(b"green %d" % number for number in range(500)), b"red old")
    recipient, quick = Recipient(), Recipient()
    recipient.consume(queue, selection=Wanting(b"red"))
    publish(broker, b"red new")
    quick.consume(queue, prefetch=1, selection=Wanting(b"blue"))
    publish(broker, b"blue 1")
    clock.advance(0)
    assert recipient.bodies == [b"red old", b"red new"]
    assert quick.bodies == [b"blue 1"]


def test_a_queue_that_was_long_is_in_memory_again_once_it_is_short() -> None:
    broker = MemoryBroker(resident_messages=100)
    queue = broker.vhost.declare_queue("q")
    publish(broker, *(b"red %d" % number for number in range(1000)))
    recipient = Recipient()
    recipient.consume(queue, settles=False, selection=Wanting(b"red"))
    written = queue.disk_writes
    publish(broker, *(b"green %d" % number for number in range(150)))
    assert (len(recipient.bodies), queue.disk_writes) == (1000, written)
    assert len(waiting(queue)) == 150


def test_a_search_ends_with_its_consumer_or_its_queue() -> None:
    clock = TickingClock()
    broker = MemoryBroker(clock=clock)
    queue = broker.vhost.declare_queue("q")
    publish(broker, *(b"green %d" % number for number in range(1000)))
    gone, stays = Wanting(b"red"), Wanting(b"red")
    first, second = Recipient(), Recipient()
    first.consume(queue, selection=gone)
    first.leave()
    before = gone.asked
    clock.advance(0)
    assert gone.asked == before
    second.consume(queue, selection=stays)
    broker.vhost.delete_queue(queue)
    before = stays.asked
    clock.advance(0)
    assert stays.asked == before


def test_who_wants_nothing_of_very_many_looks_at_each_once(broker: MemoryBroker, queue: Queue) -> None:
    nothing = Wanting(b"nothing")
    Recipient().consume(queue, selection=nothing)
    publish(broker, *(b"green %d" % number for number in range(20_000)), is_persistent=False)
    assert nothing.asked == 20_000


def test_a_lost_content_stops_no_search() -> None:
    broker = MemoryBroker(resident_messages=10)
    broker.vhost.declare_queue("q", is_durable=True)
    publish(broker, *(b"red %d" % number for number in range(60)))
    broker.commit()
    restarted = broker.crashed()
    restarted.store.append([Discarded(id) for id in sorted(restarted.store.held_ids)[20:40]])
    restarted.store.commit()
    recipient = Recipient()
    recipient.consume(restarted.vhost.queue("q"), selection=Wanting(b"red"))
    assert recipient.bodies == [b"red %d" % number for number in (*range(20), *range(40, 60))]
    assert len(restarted.vhost.queue("q")) == 0
