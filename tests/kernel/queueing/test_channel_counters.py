"""Counters of a channel per exchange and queue, and counters of an exchange's routes."""

import weakref

import pytest

from gateway.kernel.counters import COUNTED, Counters
from gateway.kernel.messages.message import Message, Properties
from gateway.kernel.messages.native_header import native_header
from gateway.kernel.queueing import channel_counters as counters_module
from gateway.kernel.queueing.channel_counters import ChannelCounters
from gateway.kernel.routing import exchange as exchange_module
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.testing import MemoryBroker
from tests.clocks import TickingClock, TurnClock

HEADER = native_header(Properties())


def vhost_with_a_fanout() -> VirtualHost:
    """Return a virtual host whose exchange ``fan`` is bound to ``a`` and ``b``."""
    vhost = MemoryBroker().vhost
    vhost.declare_exchange("fan", "fanout")
    for name in "ab":
        vhost.bind(vhost.exchange("fan"), vhost.declare_queue(name), "")
    return vhost


def publish(vhost: VirtualHost, exchange: str, key: str = "k", count: int = 1) -> None:
    for _ in range(count):
        vhost.publish(vhost.exchange(exchange), Message(exchange, key, HEADER, b""))


def routed_by_queue(vhost: VirtualHost, exchange: str) -> dict[str, int]:
    return {each[0].name: each[1] for each in vhost.exchange(exchange).passed_on() if each is not None}


def in_and_out(vhost: VirtualHost, exchange: str) -> tuple[int, int]:
    return vhost.exchange(exchange).published_in, vhost.exchange(exchange).published_out


def test_an_exchange_counts_by_queue() -> None:
    vhost = vhost_with_a_fanout()
    publish(vhost, "fan", "k", 3)
    publish(vhost, "fan", "l", 2)
    publish(vhost, "", "a")
    publish(vhost, "", "nowhere")
    assert (routed_by_queue(vhost, "fan"), in_and_out(vhost, "fan")) == ({"a": 5, "b": 5}, (5, 10))
    assert (routed_by_queue(vhost, ""), in_and_out(vhost, "")) == ({"a": 1}, (2, 1))


def test_counts_survive_a_change_of_routes() -> None:
    vhost = vhost_with_a_fanout()
    publish(vhost, "fan", count=2)
    vhost.bind(vhost.exchange("fan"), vhost.declare_queue("c"), "")
    publish(vhost, "fan", count=3)
    assert (routed_by_queue(vhost, "fan"), in_and_out(vhost, "fan")) == ({"a": 5, "b": 5, "c": 3}, (5, 13))


class Owner:
    """The connection of an exclusive queue."""


def test_exclusive_queues_of_connections_that_come_and_go_stay_in_no_counts() -> None:
    vhost = vhost_with_a_fanout()
    fan = vhost.exchange("fan")
    last: weakref.ref[Owner] | None = None
    for number in range(500):
        owner = Owner()
        last = weakref.ref(owner)
        queue = vhost.declare_queue(f"reply {number}", owner=owner)
        vhost.bind(fan, queue, "")
        publish(vhost, "fan")
        vhost.release(owner)
        del owner, queue
        assert last() is None
    assert len(fan._passed_on) < 100
    assert routed_by_queue(vhost, "fan") == {"a": 500, "b": 500}


def test_a_deleted_queue_counts_in_the_total_only() -> None:
    vhost = vhost_with_a_fanout()
    publish(vhost, "fan", count=2)
    vhost.delete_queue(vhost.queue("a"))
    publish(vhost, "fan")
    assert (routed_by_queue(vhost, "fan"), in_and_out(vhost, "fan")) == ({"b": 3}, (3, 5))


def test_uncached_routes_are_counted_too() -> None:
    vhost = vhost_with_a_fanout()
    vhost.declare_exchange("h", "headers")
    vhost.bind(vhost.exchange("h"), vhost.queue("a"), "")
    publish(vhost, "h", count=4)
    assert (routed_by_queue(vhost, "h"), in_and_out(vhost, "h")) == ({"a": 4}, (4, 4))
    assert not vhost.exchange("h").routes


def test_the_cache_of_routing_keys_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange_module, "ROUTES_REMEMBERED", 3)
    vhost = vhost_with_a_fanout()
    for number in range(7):
        publish(vhost, "fan", str(number))
    assert (len(vhost.exchange("fan").routes), len(vhost.exchange("fan").route_by_ends)) == (1, 1)
    assert in_and_out(vhost, "fan") == (7, 14)


def test_the_cache_of_routes_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange_module, "ROUTES_REMEMBERED", 3)
    vhost = vhost_with_a_fanout()
    queues = [vhost.declare_queue(str(number)) for number in range(7)]
    for queue in queues:
        publish(vhost, "", queue.name)
    assert len(vhost.default_exchange.route_by_ends) == 1
    assert routed_by_queue(vhost, "") == {queue.name: 1 for queue in queues}


def test_removed_counters_stay_in_the_totals_of_a_channel() -> None:
    vhost, channel_counters = vhost_with_a_fanout(), ChannelCounters()
    queue = vhost.queue("a")
    channel_counters.for_queue(queue).deliver += 2
    channel_counters.for_exchange("fan").publish += 3
    channel_counters.for_exchange("fan").return_unroutable += 1
    vhost.delete_queue(queue)
    channel_counters.forget_deleted()
    channel_counters.forget_exchanges()
    channel_counters.for_exchange("fan").publish += 1
    channel_counters.for_queue(vhost.queue("b")).deliver += 1
    totals = channel_counters.totals()
    assert (list(channel_counters.by_queue), channel_counters.by_exchange["fan"].publish) == ([vhost.queue("b")], 1)
    assert (totals.deliver, totals.publish, channel_counters.published().return_unroutable) == (3, 4, 1)


def test_the_queues_of_cached_routes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange_module, "QUEUES_REMEMBERED", 5)
    vhost = MemoryBroker().vhost
    for number in range(9):
        queue = vhost.declare_queue(str(number))
        for key in range(number, 9):
            vhost.bind(vhost.exchange("amq.direct"), queue, str(key))
    for key in range(9):
        publish(vhost, "amq.direct", str(key))
        routes = vhost.exchange("amq.direct").route_by_ends.values()
        assert sum(len(route.queues) for route in routes) <= 4 + 9
    assert routed_by_queue(vhost, "amq.direct") == {str(number): 9 - number for number in range(9)}


def test_a_listing_of_very_many_queues_has_the_counts_of_its_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange_module, "_FEW", 100)
    monkeypatch.setattr(exchange_module, "_STEP", 10)
    vhost = MemoryBroker().vhost
    fan = vhost.exchange("amq.fanout")
    for number in range(150):
        vhost.bind(fan, vhost.declare_queue(str(number)), "")
    publish(vhost, "amq.fanout", count=2)
    listing, listed = fan.passed_on(), []
    for each in listing:
        listed.append(each)
        if len(listed) == 5:
            for _ in fan.forget() or ():
                pass
            publish(vhost, "amq.fanout")
            vhost.delete_queue(vhost.queue("7"))
    assert listed.count(None) >= 15, "steps of ten queues"
    assert {each[0].name: each[1] for each in listed if each is not None} == {
        str(number): 2 for number in range(150) if number != 7
    }
    assert fan.passed_on_to(vhost.queue("8")) == 3


def test_the_counts_of_very_many_queues_are_added_up_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange_module, "_FEW", 100)
    monkeypatch.setattr(exchange_module, "_STEP", 10)
    clock = TickingClock()
    vhost = MemoryBroker(clock=clock).vhost
    fan = vhost.exchange("amq.fanout")
    for number in range(150):
        vhost.bind(fan, vhost.declare_queue(str(number)), "")
    publish(vhost, "amq.fanout", count=2)
    expected = {str(number): 2 for number in range(150)}
    steps = fan.forget()
    assert steps is not None
    for _ in steps:
        assert routed_by_queue(vhost, "amq.fanout") == expected
    assert len(fan._passed_on) == 150
    publish(vhost, "amq.fanout")
    vhost.bind(fan, vhost.queue("0"), "again")
    assert len(fan._past) == 1, "none of it in the turn of the binding"
    publish(vhost, "amq.fanout")
    vhost.bind(fan, vhost.queue("0"), "once more")
    clock.advance(0)
    assert not fan._past
    assert routed_by_queue(vhost, "amq.fanout") == {str(number): 4 for number in range(150)}
    assert in_and_out(vhost, "amq.fanout") == (4, 600)


# The totals of a virtual host

FEW = counters_module.MOST_AT_ONCE
MANY = FEW + 500


@pytest.fixture
def many() -> VirtualHost:
    """A virtual host with more queues than are added up at once."""
    vhost = MemoryBroker(clock=TurnClock()).vhost
    for number in range(MANY):
        vhost.declare_queue(str(number))
    return vhost


def delivered(vhost: VirtualHost) -> int:
    return vhost.traffic.delivered["amqp091", "classic"].deliver


def turns(vhost: VirtualHost) -> int:
    """Run turns until nothing is left to do; return how many there were."""
    clock = vhost.queue("0").clock
    assert isinstance(clock, TurnClock)
    return sum(1 for _ in iter(clock.turn, False))


def deliver(vhost: VirtualHost, counters: ChannelCounters, queues: int = MANY) -> None:
    for number in range(queues):
        counters.for_queue(vhost.queue(str(number))).deliver += 1


@pytest.mark.parametrize("queues", [FEW, MANY])
def test_the_deliveries_of_many_queues_are_added_to_the_totals_in_several_turns(many: VirtualHost, queues: int) -> None:
    counters = ChannelCounters()
    deliver(many, counters, queues)
    counters.drain("amqp091", many.traffic)
    assert delivered(many) == (queues if queues == FEW else 0)
    assert (turns(many) > 2) == (queues > FEW)
    assert delivered(many) == queues
    counters.drain("amqp091", many.traffic)
    turns(many)
    assert delivered(many) == queues, "each is added once"


def test_what_is_delivered_while_counts_are_added_up_is_added_too(many: VirtualHost) -> None:
    counters = ChannelCounters()
    deliver(many, counters)
    counters.drain("amqp091", many.traffic)
    clock = many.queue("0").clock
    assert isinstance(clock, TurnClock)
    for name in ("3", "140"):
        clock.turn()
        counters.for_queue(many.queue(name)).deliver += 1
        many.delete_queue(many.queue(name))
        counters.forget_deleted()
        counters.drain("amqp091", many.traffic)  # the last one is that of a channel that is closed now
    turns(many)
    assert delivered(many) == MANY + 2


def test_all_counts_of_another_are_added() -> None:
    names = (*COUNTED, "dropped", "expired", "over_limit", "rejected")
    counters, other = Counters(), Counters()
    for number, name in enumerate(names, 1):
        setattr(counters, name, 100)
        setattr(other, name, number)
    counters.add(other)
    assert [getattr(counters, name) for name in names] == [100 + number for number in range(1, len(names) + 1)]
