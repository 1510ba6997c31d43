"""Exchange types are replaced while the virtual host runs: bindings stay, and one turn separates old and new routes."""

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.api import (
    Binding,
    Destination,
    ExchangeTypes,
    Interceptor,
    Message,
    PreconditionFailed,
    QueueFeatureType,
    Tracer,
)
from gateway.kernel.broker.plugin_swap import swapping_plugins
from gateway.kernel.vhosts.plugins import PluginParts
from gateway.testing import MemoryBroker
from tests.plugins.fanout import CorrectFanout


class All(CorrectFanout):
    """Routes to all destinations."""

    routes_by_key = True


class First(All):
    """Routes to the destination that was bound first."""

    def route(self, message: Message) -> list[Destination]:
        return list(super().route(message))[:1]


class Picky(All):
    """Refuses the binding key ``bad``."""

    def bind(self, binding: Binding) -> None:
        if binding.routing_key == "bad":
            raise PreconditionFailed("bad key")
        super().bind(binding)


class View:
    """The plugins of a virtual host, as the kernel sees them."""

    def __init__(self, types: ExchangeTypes) -> None:
        self.exchange_types = types

    def plugin_of(self, part: object) -> str:
        return "mine"

    def tracers(self, vhost: object) -> Sequence[Tracer]:
        return ()

    @property
    def queue_features(self) -> Sequence[QueueFeatureType]:
        return ()

    def interceptors(self, vhost: object) -> Sequence[Interceptor]:
        return ()


class Swapping:
    """A broker whose exchange ``e`` of type ``x-mine`` gets other types."""

    def __init__(self, first: type[All] = All) -> None:
        self.broker = MemoryBroker()
        self.vhost = self.broker.vhost
        self.standard = dict(self.vhost.exchange_types)
        self.vhost.exchanges.use({**self.standard, "x-mine": first})
        self.exchange = self.vhost.declare_exchange("e", "x-mine", is_durable=True)

    def queue(self, name: str, key: str = "") -> None:
        self.vhost.bind(self.exchange, self.vhost.declare_queue(name, is_durable=True), key)

    def steps(self, types: Mapping[str, type[All]], *, may_become_inert: bool = False):  # type: ignore[no-untyped-def]
        view = View({**self.standard, **types})
        return swapping_plugins(
            self.broker.kernel, self.vhost, view, PluginParts(), {}, is_changed=lambda type: False,
            may_become_inert=may_become_inert,
        )  # fmt: skip

    def swap(self, types: Mapping[str, type[All]], *, may_become_inert: bool = False) -> None:
        for _ in self.steps(types, may_become_inert=may_become_inert):
            pass

    def reached(self) -> list[str]:
        """Publish a message; return the queues that got it."""
        before = {name: len(queue) for name, queue in self.vhost.queue_by_name.items()}
        self.broker.publish("k", exchange="e")
        return [name for name, queue in self.vhost.queue_by_name.items() if len(queue) > before[name]]


def test_routes_change_and_bindings_stay() -> None:
    swapping = Swapping()
    swapping.queue("a")
    swapping.queue("b")
    assert swapping.reached() == ["a", "b"]  # the route is cached
    swapping.swap({"x-mine": First})
    assert swapping.reached() == ["a"]
    assert len(swapping.vhost.bindings.of(swapping.exchange)) == 2


def test_exchanges_of_other_types_keep_their_objects() -> None:
    swapping = Swapping()
    topic = swapping.vhost.exchange("amq.topic").type
    swapping.swap({"x-mine": First})
    assert swapping.vhost.exchange("amq.topic").type is topic


def test_later_declarations_use_the_new_types() -> None:
    swapping = Swapping()
    swapping.swap({"x-mine": All, "x-new": First})
    assert isinstance(swapping.vhost.declare_exchange("n", "x-new").type, First)


def test_the_old_type_routes_until_the_last_step() -> None:
    swapping = Swapping()
    for number in range(100):
        swapping.queue(f"q{number}")
    steps = swapping.steps({"x-mine": First})
    next(steps)
    assert len(swapping.reached()) == 100
    for _ in steps:
        pass
    assert swapping.reached() == ["q0"]


def test_changes_of_clients_during_the_swap_are_in_both_types() -> None:
    swapping = Swapping()
    for number in range(100):
        swapping.queue(f"q{number}")
    steps = swapping.steps({"x-mine": Picky})
    for _ in range(4):
        next(steps)
    swapping.vhost.delete_queue(swapping.vhost.queue("q0"))
    swapping.vhost.delete_queue(swapping.vhost.queue("q99"))
    swapping.queue("late")
    late = swapping.vhost.declare_exchange("late", "x-mine")
    for _ in steps:
        pass
    assert isinstance(late.type, Picky)
    assert swapping.reached() == [*(f"q{number}" for number in range(1, 99)), "late"]


def test_a_refused_binding_leaves_everything_as_it_was() -> None:
    swapping = Swapping()
    swapping.queue("a")
    swapping.queue("b", "bad")
    before = swapping.exchange.type
    with pytest.raises(PreconditionFailed, match="exchange 'e' in vhost '/', binding to 'b': bad key"):
        swapping.swap({"x-mine": Picky})
    assert swapping.exchange.type is before
    assert swapping.reached() == ["a", "b"]
    assert swapping.vhost.exchange_types["x-mine"] is All
    swapping.swap({"x-mine": First})  # the next swap may start


def test_a_binding_of_a_client_that_only_the_new_type_refuses_stops_the_swap() -> None:
    swapping = Swapping()
    for number in range(50):
        swapping.queue(f"q{number}")
    steps = swapping.steps({"x-mine": Picky})
    next(steps)
    swapping.queue("b", "bad")
    with pytest.raises(PreconditionFailed, match="bad key"):
        for _ in steps:
            pass
    assert len(swapping.reached()) == 51


def test_a_second_swap_at_the_same_time_is_refused() -> None:
    swapping = Swapping()
    swapping.queue("a")
    steps = swapping.steps({"x-mine": First})
    next(steps)
    with pytest.raises(PreconditionFailed, match="in progress"):
        swapping.swap({"x-mine": Picky})
    steps.close()
    assert isinstance(swapping.exchange.type, All)
    swapping.swap({"x-mine": First})


def test_an_exchange_without_a_type_becomes_inert_and_is_revived() -> None:
    swapping = Swapping()
    swapping.queue("a")
    events: list[str] = []
    swapping.broker.kernel.events.subscribe(lambda event: events.append(event.name))
    swapping.swap({}, may_become_inert=True)
    assert "unknown exchange type 'x-mine'" in swapping.exchange.inert_reason
    assert swapping.reached() == []
    swapping.queue("b")
    swapping.swap({"x-mine": All})
    assert swapping.exchange.inert_reason == ""
    assert swapping.reached() == ["a", "b"]
    assert [name for name in events if name.startswith("exchange.")] == ["exchange.inert", "exchange.revived"]


def test_a_new_version_without_a_type_in_use_is_refused() -> None:
    swapping = Swapping()
    with pytest.raises(PreconditionFailed, match="unknown exchange type 'x-mine'"):
        swapping.swap({})
    assert swapping.exchange.inert_reason == ""


def test_a_revived_exchange_keeps_a_refused_binding_without_effect() -> None:
    swapping = Swapping()
    swapping.swap({}, may_become_inert=True)
    swapping.queue("a")
    swapping.queue("b", "bad")
    swapping.swap({"x-mine": Picky})
    assert swapping.reached() == ["a"]
    swapping.vhost.delete_queue(swapping.vhost.queue("b"))  # unbinds nothing in the type
    assert swapping.broker.kernel.faults.total == 0


def test_delayed_messages_of_an_inert_exchange_are_released_once_it_is_revived() -> None:
    swapping = Swapping()
    delayed = swapping.vhost.declare_exchange(
        "d", "x-delayed-message", is_durable=True, arguments={"x-delayed-type": "x-mine"}
    )
    swapping.vhost.bind(delayed, swapping.vhost.declare_queue("q", is_durable=True), "k")
    swapping.broker.publish("k", exchange="d", headers={"x-delay": 1000})
    swapping.swap({}, may_become_inert=True)
    swapping.broker.advance(2)
    assert len(swapping.vhost.queue("q")) == 0
    swapping.swap({"x-mine": First})
    swapping.broker.advance(120)
    assert len(swapping.vhost.queue("q")) == 1


def test_the_record_is_durable() -> None:
    swapping = Swapping()
    for _ in swapping_plugins(
        swapping.broker.kernel, swapping.vhost, View(swapping.standard), PluginParts(), {"exchange-local-random": {}},
        is_changed=lambda type: False, may_become_inert=True,
    ):  # fmt: skip
        pass
    swapping.broker.commit()
    assert "x-local-random" in swapping.broker.crashed().vhost.exchange_types


def test_a_deleted_virtual_host_ends_the_swap() -> None:
    swapping = Swapping()
    steps = swapping.steps({"x-mine": First})
    next(steps)
    swapping.broker.kernel.delete_vhost("/")
    swapping.broker.advance(1)
    with pytest.raises(Exception, match=r"not found|being deleted"):
        for _ in steps:
            pass


@given(st.lists(st.tuples(st.sampled_from(["bind", "unbind", "publish", "step"]), st.integers(0, 5)), max_size=60))
def test_no_message_is_lost_or_duplicated_whatever_clients_do_during_a_swap(
    actions: list[tuple[str, int]],
) -> None:
    """The new type routes as the old one, so each message reaches the queues bound at its publish, once."""
    swapping = Swapping()
    names = [f"q{number}" for number in range(6)]
    for name in names:
        swapping.vhost.declare_queue(name)
    bound: set[str] = set()
    expected = dict.fromkeys(names, 0)
    steps = swapping.steps({"x-mine": Picky})
    for action, number in actions:
        queue = swapping.vhost.queue(names[number])
        if action == "bind":
            swapping.vhost.bind(swapping.exchange, queue, "")
            bound.add(queue.name)
        elif action == "unbind":
            swapping.vhost.unbind(swapping.exchange, queue, "")
            bound.discard(queue.name)
        elif action == "publish":
            swapping.broker.publish("k", exchange="e")
            for name in bound:
                expected[name] += 1
        else:
            next(steps, None)
    for _ in steps:
        pass
    swapping.broker.publish("k", exchange="e")
    for name in bound:
        expected[name] += 1
    assert isinstance(swapping.exchange.type, Picky)
    assert {name: len(swapping.vhost.queue(name)) for name in names} == expected
