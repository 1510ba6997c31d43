"""Routes to very many queues are found in slices, and are the same as those found at once."""

from itertools import pairwise

import pytest

from gateway.kernel.messages.message import Message
from gateway.kernel.routing.exchange import MOST_QUEUES, Route
from gateway.kernel.routing.router import Walk
from gateway.kernel.vhosts.batch_publish import BatchPublish
from gateway.kernel.vhosts.verdict import Verdict
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.testing import MemoryBroker
from gateway.testing.broker import header_of
from gateway_memory import MemoryStore
from tests.clocks import TickingClock
from tests.step_store import StepStore

QUEUES = MOST_QUEUES + 500

#: The destinations that one step may examine.
STEP = 64


@pytest.fixture
def clock() -> TickingClock:
    return TickingClock()


@pytest.fixture
def store() -> StepStore:
    return StepStore()


@pytest.fixture
def broker(clock: TickingClock, store: MemoryStore) -> MemoryBroker:
    return MemoryBroker(store, clock=clock)


@pytest.fixture
def vhost(broker: MemoryBroker) -> VirtualHost:
    return broker.vhost


def bind_many(vhost: VirtualHost, exchange: str, first: int = 0, key: str = "#") -> None:
    source = vhost.exchange(exchange)
    for number in range(first, first + QUEUES):
        vhost.bind(source, vhost.declare_queue(f"q{number}", is_durable=True), key)


def message(exchange: str, key: str = "#", sender_keys: tuple[str, ...] = ()) -> Message:
    return Message(exchange, key, header_of(is_persistent=True, sender_keys=sender_keys), b"body")


def walk_of(vhost: VirtualHost, exchange: str, key: str = "#", sender_keys: tuple[str, ...] = ()) -> Walk:
    found = vhost.find_route(vhost.exchange(exchange), message(exchange, key, sender_keys))
    assert isinstance(found, Walk)
    return found


def walked(vhost: VirtualHost, walk: Walk) -> list[str]:
    """Do the rest of a walk; return the names of the queues."""
    for _ in vhost.walking(walk):
        pass
    assert walk.route is not None
    return [queue.name for queue in walk.route.queues]


@pytest.mark.parametrize("exchange", ["amq.fanout", "amq.direct", "amq.topic", "amq.headers"])
def test_a_step_examines_few_bindings(vhost: VirtualHost, exchange: str) -> None:
    bind_many(vhost, exchange)
    walk = walk_of(vhost, exchange)
    sizes = [0, *(len(walk.found) for _ in vhost.walking(walk))]
    assert max(after - before for before, after in pairwise(sizes)) <= STEP
    assert walk.route is not None
    assert set(walk.route.queues) == set(vhost.queue_by_name.values())


def test_the_route_is_cached_for_its_key(vhost: VirtualHost) -> None:
    bind_many(vhost, "amq.fanout")
    walk = walk_of(vhost, "amq.fanout", "k")
    walked(vhost, walk)
    assert vhost.find_route(vhost.exchange("amq.fanout"), message("amq.fanout", "k")) is walk.route
    other = walk_of(vhost, "amq.fanout", "l")
    walked(vhost, other)
    assert other.route is walk.route, "keys share the route"


def test_a_walk_has_the_bindings_at_its_start_and_is_not_cached_if_they_changed(vhost: VirtualHost) -> None:
    bind_many(vhost, "amq.fanout")
    walk = walk_of(vhost, "amq.fanout")
    next(steps := vhost.walking(walk))
    vhost.bind(vhost.exchange("amq.fanout"), vhost.declare_queue("late"), "")
    vhost.delete_queue(vhost.queue(f"q{QUEUES - 1}"))
    for _ in steps:
        pass
    assert walk.route is not None
    assert [queue.name for queue in walk.route.queues] == [f"q{number}" for number in range(QUEUES - 1)]
    again = walked(vhost, walk_of(vhost, "amq.fanout"))
    assert (len(again), again[-1]) == (QUEUES, "late")


def test_each_queue_behind_several_wide_exchanges_is_found_once(vhost: VirtualHost) -> None:
    for name, first in (("x", 0), ("y", 300)):
        vhost.declare_exchange(name, "fanout")
        bind_many(vhost, name, first)
        vhost.bind(vhost.exchange("amq.topic"), vhost.exchange(name), "#")
    vhost.declare_queue("only")
    vhost.bind(vhost.exchange("amq.topic"), vhost.queue("only"), "#")
    names = walked(vhost, walk_of(vhost, "amq.topic", "a.b"))
    assert len(names) == len(set(names)) == QUEUES + 300 + 1


def test_several_keys_of_a_sender_find_each_queue_once(vhost: VirtualHost) -> None:
    bind_many(vhost, "amq.direct", key="a")
    bind_many(vhost, "amq.direct", 100, key="b")
    names = walked(vhost, walk_of(vhost, "amq.direct", "a", ("b",)))
    assert len(names) == len(set(names)) == QUEUES + 100
    assert not vhost.exchange("amq.direct").routes


def test_a_message_to_very_many_exchanges_without_queues_is_unrouted_at_once(vhost: VirtualHost) -> None:
    for number in range(QUEUES):
        vhost.bind(vhost.exchange("amq.fanout"), vhost.declare_exchange(f"x{number}", "fanout"), "")
    assert vhost.publish(vhost.exchange("amq.fanout"), message("amq.fanout")) is Verdict.UNROUTED


def test_an_uncached_message_is_offered_to_each_queue_once_and_counted(
    vhost: VirtualHost, clock: TickingClock, store: StepStore
) -> None:
    bind_many(vhost, "amq.fanout")
    clock.advance(0)
    store.sizes.clear()
    assert vhost.publish(vhost.exchange("amq.fanout"), message("amq.fanout")) is Verdict.TAKEN
    assert not any(len(queue) for queue in vhost.queue_by_name.values()), "the first slices find the queues"
    clock.advance(0)
    assert {len(queue) for queue in vhost.queue_by_name.values()} == {1}
    exchange = vhost.exchange("amq.fanout")
    assert (exchange.published_in, exchange.published_out, vhost.traffic.published) == (1, QUEUES, 1)


def test_bindings_that_change_for_each_message_do_not_add_work_to_a_turn(
    vhost: VirtualHost, clock: TickingClock
) -> None:
    bind_many(vhost, "amq.fanout")
    fan, extra = vhost.exchange("amq.fanout"), vhost.declare_queue("extra")
    for number in range(4):
        vhost.publish(fan, message("amq.fanout"))
        clock.advance(0)
        added = len(fan._passed_on)
        vhost.bind(fan, extra, str(number))
        assert len(fan._passed_on) == added
    clock.advance(0)
    assert not fan._past
    assert {each[1] for each in fan.passed_on() if each is not None} == {3, 4}
    assert {fan.passed_on_to(queue) for queue in vhost.queue_by_name.values()} == {3, 4}
    assert len(fan.route_by_ends) <= 2


# Batches


def batch_of(broker: MemoryBroker) -> BatchPublish:
    return BatchPublish(broker.vhost, broker.kernel.journal)


def test_a_batch_is_published_in_slices_and_is_one_step_of_the_store(
    broker: MemoryBroker, vhost: VirtualHost, store: StepStore
) -> None:
    bind_many(vhost, "amq.fanout")
    broker.commit()
    store.sizes.clear()
    fan, default = vhost.exchange("amq.fanout"), vhost.default_exchange
    messages = [(fan, message("amq.fanout")), *((default, message("", f"q{n}")) for n in range(900))]
    steps = batch_of(broker).steps(messages)
    largest = before = 0
    while True:
        try:
            next(steps)
        except StopIteration as end:
            outcome = end.value
            break
        broker.end_turn()
        count = sum(len(queue) for queue in list(vhost.queue_by_name.values()))
        largest, before = max(largest, count - before), count
        assert store.sizes == []
    broker.end_turn()
    assert largest <= STEP
    assert (outcome.taken, outcome.unrouted, outcome.refused) == (901, 0, 0)
    assert store.sizes == [QUEUES + 1 + 2 * 900]


def test_a_batch_that_is_abandoned_at_a_crash_is_discarded(broker: MemoryBroker, vhost: VirtualHost) -> None:
    bind_many(vhost, "amq.fanout")
    broker.commit()
    steps = batch_of(broker).steps([(vhost.exchange("amq.fanout"), message("amq.fanout"))])
    while not len(vhost.queue("q0")):
        next(steps)
    broker.commit()
    assert not any(len(queue) for queue in broker.crashed().vhost.queue_by_name.values())


def test_routes_to_few_queues_are_found_at_once(vhost: VirtualHost) -> None:
    vhost.bind(vhost.exchange("amq.fanout"), vhost.declare_queue("q"), "")
    found = vhost.find_route(vhost.exchange("amq.fanout"), message("amq.fanout"))
    assert isinstance(found, Route)
    assert [queue.name for queue in found.queues] == ["q"]
