"""Delayed messages: each is released once, when it is due, whatever happens in between."""

from collections.abc import Callable
from itertools import pairwise

import pytest

from gateway.kernel.backlog.delay_index import BATCH, PAUSE_MS, RESIDENT_DELAYED, DelayIndex
from gateway.kernel.clock import SLICE_S
from gateway.kernel.errors import CommandInvalid, PreconditionFailed
from gateway.kernel.messages.death_records import DeathReason
from gateway.kernel.messages.message import Message
from gateway.kernel.messages.queued_message import QueuedMessage
from gateway.kernel.queueing.delivery_outcome import DeliveryOutcome
from gateway.kernel.queueing.queue import Queue
from gateway.kernel.routing.exchange import MOST_QUEUES
from gateway.kernel.vhosts.verdict import Verdict
from gateway.testing import MemoryBroker, Recipient
from gateway.testing.broker import header_of
from gateway.testing.clock import FakeTimer
from tests.clocks import LOOK_S, TurnClock
from tests.kernel.backlog.steps import found_by, result_of


def delayed_queue(broker: MemoryBroker) -> Queue:
    return broker.vhost.declare_queue("q", is_durable=True, arguments={"x-delayed-delivery": True})


def send(
    broker: MemoryBroker, body: bytes, delay_ms: int, *, exchange: str = "", is_persistent: bool = True
) -> Verdict:
    return broker.publish("q", body, exchange=exchange, headers={"x-delay": delay_ms}, is_persistent=is_persistent)


def ready(queue: Queue) -> list[bytes]:
    """Return the ready messages of a queue and leave them there."""
    recipient = Recipient()
    while recipient.get(queue) is not None:
        pass
    recipient.leave()
    return recipient.bodies


@pytest.mark.parametrize("is_persistent", [True, False], ids=["persistent", "transient"])
def test_a_delayed_message_becomes_ready_when_it_is_due(broker: MemoryBroker, is_persistent: bool) -> None:
    queue = delayed_queue(broker)
    assert send(broker, b"late", 1000, is_persistent=is_persistent) is Verdict.TAKEN
    send(broker, b"soon", 400, is_persistent=is_persistent)
    broker.publish("q", b"now")
    assert ready(queue) == [b"now"]
    broker.clock.advance(0.399)
    assert ready(queue) == [b"now"]
    broker.clock.advance(0.001)
    assert ready(queue) == [b"now", b"soon"]
    broker.clock.advance(0.6)
    assert ready(queue) == [b"now", b"soon", b"late"]
    broker.clock.advance(3600)
    assert len(queue) == 3


def test_messages_that_are_due_together_are_released_in_slices_and_in_order() -> None:
    clock = TurnClock()
    broker = MemoryBroker(clock=clock)
    queue = delayed_queue(broker)
    bodies = [b"%d" % number for number in range(100)]
    for body in bodies:
        send(broker, body, 1000)
    rises, before, has_more = [], 0, clock.turn(1)
    while has_more:
        broker.commit()
        rises.append(len(queue) - before)
        before, has_more = len(queue), clock.turn()
    assert max(rises) <= SLICE_S / LOOK_S + 1
    assert ready(queue) == bodies


def test_after_a_refusal_batches_restart_with_one_message_and_double(broker: MemoryBroker) -> None:
    released: list[int] = []
    ends = [0]
    has_room = False

    def release(entry: QueuedMessage) -> DeathReason | None:
        released.append(entry.position)
        return None if has_room else DeathReason.MAXLEN

    def call_later(delay_s: float, call: Callable[[], None]) -> FakeTimer:
        if len(released) > ends[-1]:
            ends.append(len(released))
        return clock_call_later(delay_s, call)

    clock_call_later, broker.clock.call_later = broker.clock.call_later, call_later  # type: ignore[method-assign]
    delays = DelayIndex(broker.kernel.journal, release)
    for position in range(1, 1201):
        delays.hold(QueuedMessage(Message("", "q", header_of(), b"m"), position, 0, False), 1)
    broker.clock.advance(0)
    broker.clock.advance(PAUSE_MS / 1000)
    assert released == [1, 1], "only the first message is tried again"
    assert len(delays) == 1200
    released.clear()
    ends[:] = [0]
    has_room = True
    broker.clock.advance(PAUSE_MS / 1000)
    assert released == [*range(1, 1201)]
    assert ends[:9] == [0, 1, 3, 7, 15, 31, 63, 127, 255]


@pytest.mark.parametrize("delay", [0, -5, True, "-5", "1s", "٣", 2.5, None, 315_360_000_001], ids=repr)
def test_an_invalid_delay_is_ignored(broker: MemoryBroker, delay: bool | int | float | str | None) -> None:
    queue = delayed_queue(broker)
    broker.publish("q", b"now", headers={"x-delay": delay})
    assert ready(queue) == [b"now"]


def test_a_delay_may_be_a_decimal_string(broker: MemoryBroker) -> None:
    """MQTT and STOMP clients cannot send numbers in headers."""
    queue = delayed_queue(broker)
    broker.publish("q", b"later", headers={"x-delay": "1000"})
    assert ready(queue) == []
    broker.advance(1)
    assert ready(queue) == [b"later"]


def test_a_queue_without_the_argument_ignores_the_delay_header(broker: MemoryBroker) -> None:
    queue = broker.vhost.declare_queue("q")
    send(broker, b"now", 1000)
    assert ready(queue) == [b"now"]


def test_messages_due_at_the_same_time_are_released_in_publishing_order(broker: MemoryBroker) -> None:
    queue = delayed_queue(broker)
    bodies = [b"%04d" % number for number in range(2 * BATCH + 7)]
    for body in bodies:
        send(broker, body, 50, is_persistent=False)
    broker.clock.advance(0.05)
    assert ready(queue) == bodies


def test_a_waiting_consumer_gets_a_delayed_message_when_it_is_due(broker: MemoryBroker) -> None:
    queue, recipient = delayed_queue(broker), Recipient()
    recipient.consume(queue)
    send(broker, b"late", 10)
    assert recipient.bodies == []
    broker.clock.advance(0.01)
    assert recipient.bodies == [b"late"]
    recipient.settle(1)
    broker.commit()
    assert broker.store.held_ids == frozenset()


def test_delayed_messages_beyond_the_memory_limit_are_paged_out(broker: MemoryBroker) -> None:
    queue = delayed_queue(broker)
    count = RESIDENT_DELAYED + 100
    for number in range(count):
        send(broker, b"%d" % number, 1000 + number % 7, is_persistent=number % 3 == 0)
    broker.commit()
    broker.clock.advance(1.1)
    assert sorted(map(int, ready(queue))) == list(range(count))
    queue.drops.purge()
    broker.commit()
    assert broker.store.held_ids == frozenset()


def test_delayed_messages_and_their_due_times_survive_a_restart(broker: MemoryBroker) -> None:
    delayed_queue(broker)
    send(broker, b"persistent", 1000)
    send(broker, b"transient", 1000, is_persistent=False)
    broker.commit()
    broker.clock.advance(0.5)
    restarted = broker.crashed()
    queue = restarted.vhost.queue("q")
    assert ready(queue) == []
    assert [held.message.body for held in found_by(queue.ensure_delayed().delays.listing())] == [b"persistent"]
    restarted.clock.advance(0.5)
    assert ready(queue) == [b"persistent"]


def test_messages_due_during_the_downtime_are_released_at_the_start(broker: MemoryBroker) -> None:
    delayed_queue(broker)
    send(broker, b"missed", 1000)
    broker.commit()
    broker.clock.advance(5)
    restarted = broker.crashed()
    restarted.clock.advance(0)
    assert ready(restarted.vhost.queue("q")) == [b"missed"]


@pytest.mark.parametrize("is_committed", [True, False], ids=["release durable", "release lost"])
def test_a_crash_around_the_release_neither_loses_nor_duplicates_the_message(
    broker: MemoryBroker, is_committed: bool
) -> None:
    delayed_queue(broker)
    send(broker, b"once", 1000)
    broker.commit()
    broker.clock.advance(1)
    broker.end_turn()
    if is_committed:
        broker.commit()
    restarted = broker.crashed()
    restarted.clock.advance(10)
    assert ready(restarted.vhost.queue("q")) == [b"once"]


def test_delayed_messages_are_listed_by_due_time_and_can_be_cancelled(broker: MemoryBroker) -> None:
    queue = delayed_queue(broker)
    for delay in (300, 100, 200, 400):
        send(broker, b"%d" % delay, delay, is_persistent=delay % 200 == 0)
    delays = queue.ensure_delayed().delays
    beginning_ms = broker.clock.wall_ms()
    listed = found_by(delays.listing())
    assert [held.message.body for held in listed] == [b"100", b"200", b"300", b"400"]
    assert [held.due_at_ms - beginning_ms for held in listed] == [100, 200, 300, 400]
    assert [held.message.body for held in found_by(delays.listing(1, 2))] == [b"200", b"300"]
    assert result_of(delays.cancel(listed[0].position))
    assert result_of(delays.cancel(listed[3].position))
    assert not result_of(delays.cancel(12345))
    assert not result_of(delays.cancel(listed[0].position))
    assert len(delays) == 2
    assert [held.message.body for held in found_by(delays.listing())] == [b"200", b"300"]
    broker.commit()
    restarted = broker.crashed()
    restarted.clock.advance(1)
    assert ready(restarted.vhost.queue("q")) == [b"200"]


@pytest.mark.volume
def test_a_listing_and_a_search_of_many_delayed_messages_have_short_steps(broker: MemoryBroker) -> None:
    """Each step looks at a few thousand of them at most; see ADR 0018."""
    queue = delayed_queue(broker)
    for number in range(40_000):
        send(broker, b"", 40_000 - number, is_persistent=False)
    delays = queue.ensure_delayed().delays
    found = list(delays.listing(30_000, 3))
    assert [held.due_at_ms for held in found if held is not None] == [
        broker.clock.wall_ms() + delay for delay in (30_001, 30_002, 30_003)
    ]
    assert found.count(None) > 400
    assert [held.due_at_ms - broker.clock.wall_ms() for held in found_by(delays.listing(0, 2))] == [1, 2]
    last = found_by(delays.listing(0, 1))[0].position
    assert list(delays.keys_at([last])).count(None) == 10
    steps = delays.cancel(last)
    next(steps)
    assert len(delays) == 40_000
    assert result_of(steps)
    assert len(delays) == 39_999


def test_messages_that_were_cancelled_or_released_during_a_listing_are_left_out(broker: MemoryBroker) -> None:
    queue = delayed_queue(broker)
    for delay in (1, 1, 300, 400, 500):
        send(broker, b"%d" % delay, delay)
    delays = queue.ensure_delayed().delays
    positions = [held.position for held in found_by(delays.listing())]
    listing = delays.listing()
    assert next(listing) is None
    assert result_of(delays.cancel(positions[2]))
    broker.clock.advance(0.1)
    assert [held.message.body for held in found_by(listing)] == [b"400", b"500"]
    assert [held.message.body for held in found_by(delays.listing(1))] == [b"500"]


def test_rows_of_cancelled_messages_are_reused(broker: MemoryBroker) -> None:
    queue = delayed_queue(broker)
    for cycle in range(5):
        send(broker, b"a%d" % cycle, 100)
        send(broker, b"b%d" % cycle, 100)
        delays = queue.ensure_delayed().delays
        assert result_of(delays.cancel(found_by(delays.listing())[0].position))
        broker.clock.advance(0.1)
    assert ready(queue) == [b"b%d" % cycle for cycle in range(5)]


def test_deleting_a_queue_removes_its_delayed_messages(broker: MemoryBroker) -> None:
    queue = delayed_queue(broker)
    send(broker, b"never", 1000)
    send(broker, b"never", 1000, is_persistent=False)
    broker.commit()
    broker.vhost.delete_queue(queue)
    broker.clock.advance(10)
    broker.commit()
    assert broker.store.held_ids == frozenset()
    assert len(queue) == 0


def test_a_purge_keeps_delayed_messages(broker: MemoryBroker) -> None:
    queue = delayed_queue(broker)
    send(broker, b"later", 1000)
    assert queue.drops.purge() == 0
    broker.clock.advance(1)
    assert ready(queue) == [b"later"]


# Exchanges


def delayed_exchange(broker: MemoryBroker, routing: str = "direct") -> None:
    vhost = broker.vhost
    exchange = vhost.declare_exchange(
        "later", "x-delayed-message", is_durable=True, arguments={"x-delayed-type": routing}
    )
    vhost.bind(exchange, vhost.declare_queue("q", is_durable=True), "q")


@pytest.mark.parametrize("routing", ["direct", "topic", "fanout"])
def test_a_delayed_exchange_routes_messages_when_they_are_due(broker: MemoryBroker, routing: str) -> None:
    delayed_exchange(broker, routing)
    assert send(broker, b"late", 1000, exchange="later") is Verdict.TAKEN
    broker.publish("q", b"now", exchange="later")
    queue = broker.vhost.queue("q")
    assert ready(queue) == [b"now"]
    broker.vhost.bind(broker.vhost.exchange("later"), broker.vhost.declare_queue("new"), "q")
    broker.clock.advance(1)
    assert ready(queue) == [b"now", b"late"]
    assert ready(broker.vhost.queue("new")) == [b"late"]


def test_a_delayed_exchange_and_its_messages_survive_a_restart(broker: MemoryBroker) -> None:
    delayed_exchange(broker)
    send(broker, b"persistent", 1000, exchange="later")
    send(broker, b"transient", 1000, exchange="later", is_persistent=False)
    broker.commit()
    restarted = broker.crashed()
    interceptor = restarted.vhost.exchange("later").interceptor
    assert interceptor is not None
    assert interceptor.waiting is not None
    delays = interceptor.waiting.ensure_delayed().delays
    assert [held.message.body for held in found_by(delays.listing())] == [b"persistent"]
    assert ready(restarted.vhost.queue("q")) == []
    restarted.clock.advance(1)
    assert ready(restarted.vhost.queue("q")) == [b"persistent"]
    restarted.commit()
    again = restarted.crashed()
    again.clock.advance(5)
    assert ready(again.vhost.queue("q")) == [b"persistent"]


def test_deleting_a_delayed_exchange_removes_its_messages(broker: MemoryBroker) -> None:
    delayed_exchange(broker)
    send(broker, b"never", 1000, exchange="later")
    broker.commit()
    broker.vhost.delete_exchange("later")
    broker.clock.advance(5)
    broker.commit()
    assert broker.store.held_ids == frozenset()
    assert ready(broker.vhost.queue("q")) == []


def test_a_message_from_another_exchange_is_delayed_too(broker: MemoryBroker) -> None:
    delayed_exchange(broker)
    vhost = broker.vhost
    vhost.bind(vhost.exchange("amq.fanout"), vhost.exchange("later"), "")
    send(broker, b"late", 1000, exchange="amq.fanout")
    assert ready(vhost.queue("q")) == []
    broker.clock.advance(1)
    assert ready(vhost.queue("q")) == [b"late"]


def test_a_delayed_message_that_is_unroutable_when_due_is_dropped(broker: MemoryBroker) -> None:
    delayed_exchange(broker)
    broker.publish("elsewhere", b"lost", exchange="later", headers={"x-delay": 5}, is_persistent=True)
    broker.clock.advance(1)
    broker.commit()
    assert broker.store.held_ids == frozenset()


@pytest.mark.parametrize(
    "arguments", [{}, {"x-delayed-type": 7}, {"x-delayed-type": "x-delayed-message"}], ids=["none", "number", "itself"]
)
def test_a_delayed_exchange_requires_a_valid_delayed_type(broker: MemoryBroker, arguments: dict[str, str]) -> None:
    with pytest.raises(PreconditionFailed, match="'x-delayed-type' must be an existing exchange type"):
        broker.vhost.declare_exchange("later", "x-delayed-message", arguments=arguments)


def test_a_delayed_exchange_with_an_unknown_delayed_type_is_refused(broker: MemoryBroker) -> None:
    with pytest.raises(CommandInvalid, match="unknown exchange type 'none'"):
        broker.vhost.declare_exchange("later", "x-delayed-message", arguments={"x-delayed-type": "none"})


# Retries


def test_a_rejected_message_is_retried_after_each_delay_and_then_dead_lettered(
    broker: MemoryBroker,
) -> None:
    vhost = broker.vhost
    dead = vhost.declare_queue("dead", is_durable=True)
    queue = vhost.declare_queue(
        "q",
        is_durable=True,
        arguments={
            "x-retry-delays": [100, 2000],
            "x-dead-letter-exchange": "",
            "x-dead-letter-routing-key": "dead",
        },
    )
    recipient = Recipient()
    recipient.consume(queue)
    broker.publish("q", b"poison", is_persistent=True)
    recipient.settle(1, DeliveryOutcome.REJECTED)
    broker.clock.advance(0.099)
    assert len(recipient.received) == 1
    broker.clock.advance(0.001)
    assert [received.redelivered for received in recipient.received] == [False, True]
    recipient.settle(2, DeliveryOutcome.REJECTED)
    broker.clock.advance(1.999)
    assert len(recipient.received) == 2
    broker.clock.advance(0.001)
    recipient.settle(3, DeliveryOutcome.REJECTED)
    assert ready(dead) == [b"poison"]
    broker.clock.advance(60)
    assert len(recipient.received) == 3


def test_a_pending_retry_and_its_due_time_survive_a_restart(broker: MemoryBroker) -> None:
    queue = broker.vhost.declare_queue("q", is_durable=True, arguments={"x-retry-delays": [1000]})
    broker.publish("q", b"again", is_persistent=True)
    recipient = Recipient()
    recipient.get(queue)
    recipient.settle(1, DeliveryOutcome.REJECTED)
    broker.commit()
    restarted = broker.crashed()
    queue = restarted.vhost.queue("q")
    assert ready(queue) == []
    restarted.clock.advance(1)
    entry = queue.take()
    assert entry is not None
    assert (entry.message.body, entry.deliveries, entry.is_redelivered) == (b"again", 1, True)
    queue.settle(entry, DeliveryOutcome.REJECTED)
    restarted.commit()
    assert restarted.store.held_ids == frozenset()


def test_a_retried_message_returns_to_its_old_position(broker: MemoryBroker) -> None:
    queue, recipient = broker.vhost.declare_queue("q", arguments={"x-retry-delays": [10]}), Recipient()
    for body in (b"first", b"second"):
        broker.publish("q", body)
    recipient.get(queue)
    recipient.settle(1, DeliveryOutcome.REJECTED)
    assert ready(queue) == [b"second"]
    broker.clock.advance(0.01)
    assert ready(queue) == [b"first", b"second"]


# Messages for very many queues


@pytest.fixture
def wide() -> MemoryBroker:
    """A broker with a delayed exchange that routes to very many queues, and two delayed messages in it."""
    broker = MemoryBroker(clock=TurnClock())
    exchange = broker.vhost.declare_exchange(
        "later", "x-delayed-message", is_durable=True, arguments={"x-delayed-type": "fanout"}
    )
    for number in range(MOST_QUEUES + 300):
        broker.vhost.bind(exchange, broker.vhost.declare_queue(f"wide{number}", is_durable=True), "")
    for body in (b"first", b"second"):
        send(broker, body, 1000, exchange="later")
    broker.commit()
    return broker


def lengths(broker: MemoryBroker) -> list[int]:
    return [len(queue) for name, queue in broker.vhost.queue_by_name.items() if name.startswith("wide")]


def run_turns(broker: MemoryBroker) -> list[int]:
    """Run turns until every delayed message is routed; return the number of messages offered in each."""
    assert isinstance(broker.clock, TurnClock)
    totals, count = [sum(lengths(broker))], len(lengths(broker))
    while totals[-1] < 2 * count:
        broker.clock.turn(PAUSE_MS / 1000)
        broker.commit()
        totals.append(sum(lengths(broker)))
    return [later - sooner for sooner, later in pairwise(totals)]


def test_a_due_message_for_very_many_queues_is_offered_in_slices_and_in_order(wide: MemoryBroker) -> None:
    assert isinstance(wide.clock, TurnClock)
    wide.clock.pass_without_calls(1)
    assert max(run_turns(wide)) < MOST_QUEUES / 2
    assert set(lengths(wide)) == {2}
    assert ready(wide.vhost.queue("wide0")) == ready(wide.vhost.queue("wide999")) == [b"first", b"second"]
    wide.commit()
    again = wide.crashed()
    again.clock.advance(10)
    assert set(lengths(again)) == {2}


def test_a_crash_within_a_due_message_for_very_many_queues_undoes_it(wide: MemoryBroker) -> None:
    assert isinstance(wide.clock, TurnClock)
    wide.clock.pass_without_calls(1)
    while not sum(lengths(wide)):
        wide.clock.turn()
        wide.commit()
    assert sum(lengths(wide)) < len(lengths(wide))
    restarted = wide.crashed()
    assert not any(lengths(restarted))
    assert isinstance(restarted.clock, TurnClock)
    restarted.clock.pass_without_calls(1)
    run_turns(restarted)
    assert set(lengths(restarted)) == {2}


def test_the_exchange_of_a_due_message_for_very_many_queues_may_be_deleted_meanwhile(wide: MemoryBroker) -> None:
    assert isinstance(wide.clock, TurnClock)
    wide.clock.pass_without_calls(1)
    while not sum(lengths(wide)):
        wide.clock.turn()
    wide.vhost.delete_exchange("later")
    while wide.clock.turn(1):
        wide.commit()
    assert min(lengths(wide)) == 1  # the second message may get to queues whose bindings are removed last
    restarted = wide.crashed()
    for queue in list(restarted.vhost.queue_by_name.values()):
        restarted.vhost.delete_queue(queue)
    restarted.advance(1)
    restarted.commit()
    assert not restarted.store.held_ids
