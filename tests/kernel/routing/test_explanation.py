"""Explanations of routes: they agree with routing on random topologies, and have no effect."""

from collections.abc import Generator
from typing import Final, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.kernel.messages.message import Arguments, Message, Value
from gateway.kernel.routing.exchange import Exchange
from gateway.kernel.vhosts.explanation import Explanation
from gateway.testing import MemoryBroker
from gateway.testing.broker import header_of
from tests.effort import examples

T = TypeVar("T")

EXCHANGES: Final = ("x1", "x2", "x3", "x4")
QUEUES: Final = ("q1", "q2", "a.b", "a")
TYPES: Final = ("direct", "fanout", "topic", "headers")
KEYS: Final = ("", "a", "a.b", "a.b.c", "q1")
PATTERNS: Final = (*KEYS, "#", "*", "a.*", "*.b", "a.#")
HEADERS: Final[tuple[Arguments, ...]] = ({}, {"h": 1}, {"h": 2, "i": "x"})


def finished(steps: Generator[None, None, T]) -> T:
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result


def explain(
    broker: MemoryBroker,
    exchange: str,
    key: str,
    headers: Arguments | None = None,
    sender_keys: tuple[str, ...] = (),
) -> Explanation:
    message = Message(exchange, key, header_of(headers=headers, sender_keys=sender_keys), b"")
    return finished(broker.vhost.explaining(broker.vhost.exchange(exchange), message))


def names(explanation: Explanation) -> set[str]:
    return {queue.name for queue in explanation.queues}


def matched(explanation: Explanation) -> set[tuple[str, str, str]]:
    """Return source, destination and key of the matching bindings."""
    return {
        (binding.source.name, binding.destination.name, binding.routing_key)
        for visit in explanation.visits
        for binding in visit.matched
    }


bindings = st.tuples(
    st.sampled_from(EXCHANGES),
    st.sampled_from((*EXCHANGES, *QUEUES)),
    st.sampled_from(PATTERNS),
    st.sampled_from(HEADERS),
)
topologies = st.fixed_dictionaries(
    {
        "exchanges": st.lists(
            st.tuples(st.sampled_from(TYPES), st.sampled_from((None, *EXCHANGES, ""))), min_size=4, max_size=4
        ),
        "bindings": st.lists(bindings, max_size=15),
    }
)


def declared(exchanges: list[tuple[str, str | None]], bound: list[tuple[str, str, str, Arguments]]) -> MemoryBroker:
    broker = MemoryBroker()
    vhost = broker.vhost
    for name, (type, alternate) in zip(EXCHANGES, exchanges, strict=True):
        arguments: dict[str, Value] = {} if alternate is None else {"alternate-exchange": alternate}
        vhost.declare_exchange(name, type, arguments=arguments)
    for name in QUEUES:
        vhost.declare_queue(name)
    for source, end, key, arguments in bound:
        destination = vhost.exchange_by_name.get(end) or vhost.queue(end)
        vhost.bind(vhost.exchange(source), destination, key, arguments)
    return broker


@settings(max_examples=examples(150))
@given(
    topology=topologies,
    exchange=st.sampled_from((*EXCHANGES, "")),
    key=st.sampled_from(KEYS),
    headers=st.sampled_from(HEADERS),
    sender_keys=st.lists(st.sampled_from(KEYS), max_size=2).map(tuple),
)
def test_an_explanation_names_the_queues_that_a_publish_reaches(
    topology: dict[str, list], exchange: str, key: str, headers: Arguments, sender_keys: tuple[str, ...]
) -> None:
    broker = declared(topology["exchanges"], topology["bindings"])
    explanation = explain(broker, exchange, key, headers, sender_keys)
    assert not any(len(queue) for queue in broker.vhost.queue_by_name.values())
    broker.publish(key, exchange=exchange, headers=headers, sender_keys=sender_keys)
    assert names(explanation) == {name for name, queue in broker.vhost.queue_by_name.items() if len(queue)}
    again = explain(broker, exchange, key, headers, sender_keys)
    assert names(again) == names(explanation)


@settings(max_examples=examples(60))
@given(topology=topologies, exchange=st.sampled_from(EXCHANGES), key=st.sampled_from(KEYS))
def test_the_matching_bindings_lead_to_the_queues(topology: dict[str, list], exchange: str, key: str) -> None:
    broker = declared(topology["exchanges"], topology["bindings"])
    explanation = explain(broker, exchange, key)
    ends = {binding.destination for visit in explanation.visits for binding in visit.matched}
    assert {end for end in ends if not isinstance(end, Exchange)} == set(explanation.queues)
    visited = {visit.visit.exchange for visit in explanation.visits}
    assert {end for end in ends if isinstance(end, Exchange)} <= visited
    assert all(v.tried_count == len(v.matched) + len(v.unmatched) for v in explanation.visits)


def test_matching_and_other_bindings_are_told_apart() -> None:
    broker = MemoryBroker()
    vhost = broker.vhost
    vhost.declare_exchange("x", "topic")
    queue, other = vhost.declare_queue("q"), vhost.declare_queue("r")
    for pattern, end in (("a.*", queue), ("b.*", queue), ("#", queue), ("c", other)):
        vhost.bind(vhost.exchange("x"), end, pattern)
    [visit] = explain(broker, "x", "a.b").visits
    assert [binding.routing_key for binding in visit.matched] == ["a.*", "#"]
    assert [binding.routing_key for binding in visit.unmatched] == ["b.*", "c"]
    assert (visit.tried_count, visit.matched_count) == (4, 2)


def test_the_alternate_exchange_is_shown() -> None:
    broker = MemoryBroker()
    vhost = broker.vhost
    vhost.declare_exchange("spare", "fanout")
    vhost.declare_exchange("x", "direct", arguments={"alternate-exchange": "spare"})
    vhost.bind(vhost.exchange("spare"), vhost.declare_queue("q"), "")
    explanation = explain(broker, "x", "k")
    assert [(v.visit.exchange.name, v.visit.used_alternate) for v in explanation.visits] == [
        ("x", True),
        ("spare", False),
    ]
    assert names(explanation) == {"q"}


def test_the_default_exchange_has_an_implicit_binding() -> None:
    broker = MemoryBroker()
    broker.vhost.declare_queue("q")
    assert matched(explain(broker, "", "q")) == {("", "q", "q")}
    assert explain(broker, "", "nope").queues == ()


def test_an_explained_message_is_not_remembered_as_a_duplicate() -> None:
    broker = MemoryBroker()
    vhost = broker.vhost
    vhost.declare_exchange("x", "fanout", arguments={"x-message-deduplication": True, "x-cache-size": 10})
    vhost.bind(vhost.exchange("x"), vhost.declare_queue("q"), "")
    headers = {"x-deduplication-header": "one"}
    for _ in range(2):
        first = explain(broker, "x", "", headers)
        assert (names(first), first.duplicate_at) == ({"q"}, None)
    broker.publish("", exchange="x", headers=headers)
    second = explain(broker, "x", "", headers)
    assert second.duplicate_at is vhost.exchange("x")
    assert len(vhost.queue("q")) == 1


def test_a_delay_is_shown_and_nothing_is_delayed() -> None:
    broker = MemoryBroker()
    exchange = broker.vhost.declare_exchange("x", "x-delayed-message", arguments={"x-delayed-type": "direct"})
    [visit] = explain(broker, "x", "k", {"x-delay": 1000}).visits
    assert exchange.interceptor is not None
    waiting = exchange.interceptor.waiting
    assert visit.visit.taker is waiting is not None
    assert waiting.delayed_count == 0


def test_counters_and_caches_of_the_router_do_not_change() -> None:
    broker = MemoryBroker()
    vhost = broker.vhost
    exchange = vhost.declare_exchange("x", "direct")
    vhost.bind(exchange, vhost.declare_queue("q"), "k")
    explain(broker, "x", "k")
    assert (exchange.published_in, exchange.routes, exchange.route_by_ends, vhost.traffic.published) == (0, {}, {}, 0)


@pytest.mark.parametrize("count", [3000])
def test_a_route_to_very_many_queues_is_explained_in_steps(count: int) -> None:
    broker = MemoryBroker()
    vhost = broker.vhost
    exchange = vhost.declare_exchange("x", "fanout")
    for number in range(count):
        vhost.bind(exchange, vhost.declare_queue(f"q{number}"), "")
    explanation = explain(broker, "x", "")
    [visit] = explanation.visits
    assert len(explanation.queues) == visit.matched_count == count
    assert (len(visit.matched), visit.unmatched) == (1000, [])
