"""x-consistent-hash: shares follow the weights, and a change of the bindings moves only the share that it must."""

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.api import Arguments, Binding, Destination, Exchange, Message, PreconditionFailed, Properties, Value
from gateway.testing import MemoryBroker, StandIn, check_exchange_type, plain_message, stand_in_binding
from gateway_amqp.header import AMQP
from gateway_amqp.properties import encode_properties
from gateway_exchanges.fanout import Fanout
from gateway_exchanges.hash_distribution import ConsistentHash
from gateway_exchanges.weighted_slots import SLOTS, WeightedSlots

WEIGHTS = ("1", "2", "10", "250", "2147483647")
KEYS = [f"order.{number}" for number in range(2_000)]
MESSAGE_BY_KEY = {key: plain_message(key) for key in KEYS}

#: Weights by queue number.
Weights = dict[int, int]
WEIGHTS_BY_QUEUE = st.dictionaries(st.integers(0, 30), st.integers(1, 20), min_size=1, max_size=12)


def exchange_of(weights: Weights, in_order: Iterable[int] | None = None) -> ConsistentHash:
    exchange = ConsistentHash({})
    for number in weights if in_order is None else in_order:
        exchange.bind(stand_in_binding(StandIn(f"q{number}"), str(weights[number])))
    return exchange


def names_by_key(exchange: ConsistentHash) -> dict[str, str]:
    return {key: reached(exchange, message) for key, message in MESSAGE_BY_KEY.items()}


def reached(exchange: ConsistentHash, message: Message) -> str:
    (destination,) = exchange.route(message)
    return destination.name


def message(**properties: object) -> Message:
    raw = encode_properties(Properties(**properties))  # type: ignore[arg-type]  # names of properties
    return Message("source", "key", AMQP.header(raw), b"")


@pytest.mark.parametrize("arguments", [{}, {"hash-header": "animal"}, {"hash-property": "message_id"}])
def test_the_type_fulfils_the_contract(arguments: Arguments) -> None:
    check_exchange_type(ConsistentHash, arguments, binding_keys=WEIGHTS)


def test_only_the_hash_of_the_routing_key_is_cached_by_key() -> None:
    assert ConsistentHash({}).routes_by_key
    assert not ConsistentHash({"hash-header": "h"}).routes_by_key
    assert not ConsistentHash({"hash-property": "timestamp"}).routes_by_key


# Weights and changes


def test_shares_are_proportional_to_weights() -> None:
    weights = {0: 1, 1: 2, 2: 3, 3: 4}
    count = Counter(names_by_key(exchange_of(weights)).values())
    for number, weight in weights.items():
        assert 0.8 < count[f"q{number}"] / (len(KEYS) * weight / 10) < 1.2


def test_a_hundred_queues_share_the_slots_about_evenly() -> None:
    slots: WeightedSlots[int] = WeightedSlots()
    for number in range(100):
        slots.set_weight(number, f"queue {number}", 7)
    count = Counter(slots.at(slot) for slot in range(SLOTS))
    assert len(count) == 100
    assert all(0.6 < each / (SLOTS / 100) < 1.4 for each in count.values())


@settings(max_examples=40, deadline=None)
@given(weights=WEIGHTS_BY_QUEUE, added=st.integers(40, 50), weight=st.integers(1, 20))
def test_a_new_queue_takes_its_share_and_no_other_key_moves(weights: Weights, added: int, weight: int) -> None:
    exchange = exchange_of(weights)
    before = names_by_key(exchange)
    exchange.bind(stand_in_binding(StandIn(f"q{added}"), str(weight)))
    after = names_by_key(exchange)
    moved = [key for key in KEYS if before[key] != after[key]]
    assert all(after[key] == f"q{added}" for key in moved)
    share = weight / (sum(weights.values()) + weight)
    assert abs(len(moved) / len(KEYS) - share) < 0.08


@settings(max_examples=40, deadline=None)
@given(weights=WEIGHTS_BY_QUEUE.filter(lambda weights: len(weights) > 1), data=st.data())
def test_the_keys_of_a_removed_queue_move_and_no_others(weights: Weights, data: st.DataObject) -> None:
    exchange = ConsistentHash({})
    bindings = {number: stand_in_binding(StandIn(f"q{number}"), str(weight)) for number, weight in weights.items()}
    for binding in bindings.values():
        exchange.bind(binding)
    before = names_by_key(exchange)
    gone = data.draw(st.sampled_from(sorted(weights)))
    exchange.unbind(bindings[gone])
    after = names_by_key(exchange)
    assert {key for key in KEYS if before[key] != after[key]} == {key for key in KEYS if before[key] == f"q{gone}"}


@settings(max_examples=30, deadline=None)
@given(weights=WEIGHTS_BY_QUEUE, data=st.data())
def test_routes_do_not_depend_on_the_order_of_binding(weights: Weights, data: st.DataObject) -> None:
    order = data.draw(st.permutations(list(weights)))
    assert names_by_key(exchange_of(weights, order)) == names_by_key(exchange_of(weights))


@settings(max_examples=30, deadline=None)
@given(changes=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), max_size=40), at=st.integers(0, SLOTS - 1))
def test_slots_are_the_same_after_any_changes(changes: list[tuple[int, int]], at: int) -> None:
    changed: WeightedSlots[int] = WeightedSlots()
    weights: dict[int, int] = {}
    for number, weight in changes:
        changed.set_weight(number, str(number), weight)
        weights[number] = weight
        changed.at(at)
    fresh: WeightedSlots[int] = WeightedSlots()
    for number, weight in weights.items():
        fresh.set_weight(number, str(number), weight)
    assert changed.at(at) == fresh.at(at)


def test_several_bindings_of_a_queue_add_up() -> None:
    twice, once = exchange_of({0: 3}), exchange_of({0: 3, 1: 5})
    queue = StandIn("q1")
    for weight in ("4", "1"):
        twice.bind(stand_in_binding(queue, weight))
    assert names_by_key(twice) == names_by_key(once)


def test_it_is_bound_to_exchanges_and_queues_alike() -> None:
    broker = MemoryBroker()
    vhost = broker.vhost
    source = vhost.declare_exchange("hash", "x-consistent-hash")
    fan = vhost.declare_exchange("fan", "fanout")
    behind, beside = vhost.declare_queue("behind"), vhost.declare_queue("beside")
    vhost.bind(fan, behind, "")
    vhost.bind(source, fan, "1")
    vhost.bind(source, beside, "1")
    for key in KEYS[:200]:
        broker.publish(key, exchange="hash")
    counts = len(vhost.queue("behind")), len(vhost.queue("beside"))
    assert sum(counts) == 200
    assert min(counts) > 60


def test_an_exchange_and_a_queue_of_the_same_name_differ() -> None:
    exchange = ConsistentHash({})
    source = Exchange("/", "source", "fanout", Fanout({}))
    named: list[Destination] = [StandIn("same"), Exchange("/", "same", "fanout", Fanout({}))]
    for destination in named:
        exchange.bind(Binding(source, destination, "1", {}))
    assert {found for key in KEYS[:100] for found in exchange.route(plain_message(key))} == set(named)


# The hashed value

HEADERS: list[tuple[Value, Value]] = [("a", "a"), (1, 1), (True, True), ([1, "x"], [1, "x"]), (b"raw", b"raw")]


@pytest.mark.parametrize(("first", "second"), HEADERS, ids=[repr(row[0]) for row in HEADERS])
def test_equal_headers_reach_the_same_queue_whatever_the_key(first: Value, second: Value) -> None:
    exchange = ConsistentHash({"hash-header": "h"})
    for number in range(20):
        exchange.bind(stand_in_binding(StandIn(f"q{number}"), "1"))
    assert reached(exchange, plain_message("x", {"h": first})) == reached(exchange, plain_message("y", {"h": second}))


NAMES_AND_VALUES = [
    ("correlation_id", [f"c{number}" for number in range(50)]),
    ("message_id", [f"m{number}" for number in range(50)]),
    ("timestamp", [datetime(2026, 1, 1, 0, number, tzinfo=UTC) for number in range(50)]),
]


@pytest.mark.parametrize(("name", "values"), NAMES_AND_VALUES, ids=[row[0] for row in NAMES_AND_VALUES])
def test_a_property_distributes_messages(name: str, values: list[object]) -> None:
    exchange = ConsistentHash({"hash-property": name})
    for number in range(5):
        exchange.bind(stand_in_binding(StandIn(f"q{number}"), "1"))
    found = [reached(exchange, message(**{name: value})) for value in values]
    assert found == [reached(exchange, message(**{name: value})) for value in values]
    assert len(set(found)) == 5


@pytest.mark.parametrize("arguments", [{"hash-header": "h"}, {"hash-property": "message_id"}])
def test_messages_without_the_value_reach_one_queue(arguments: Arguments) -> None:
    exchange = ConsistentHash(arguments)
    for number in range(20):
        exchange.bind(stand_in_binding(StandIn(f"q{number}"), "1"))
    assert len({reached(exchange, plain_message(key)) for key in KEYS[:50]}) == 1


# Refusals, with RabbitMQ's texts

REFUSED_KEYS = [
    ("", "The binding key must be an integer: <<>>"),
    ("many", 'The binding key must be an integer: <<"many">>'),
    ("1.5", 'The binding key must be an integer: <<"1.5">>'),
    ("1_0", 'The binding key must be an integer: <<"1_0">>'),
    ("é", "The binding key must be an integer: <<195,169>>"),
    ("0", "The binding key must be greater than 0"),
    ("-3", "The binding key must be greater than 0"),
    ("2147483648", "The binding key must be at most 2147483647"),
]


@pytest.mark.parametrize(("key", "text"), REFUSED_KEYS)
def test_a_binding_key_that_is_no_weight_is_refused(key: str, text: str) -> None:
    exchange = ConsistentHash({})
    with pytest.raises(PreconditionFailed) as refusal:
        exchange.bind(stand_in_binding(StandIn("q"), key))
    assert str(refusal.value) == text
    assert exchange.route(plain_message("x")) == ()


def test_a_sign_and_zeros_before_a_weight_are_accepted() -> None:
    exchange = ConsistentHash({})
    exchange.bind(stand_in_binding(StandIn("q"), "+007"))
    assert reached(exchange, plain_message("x")) == "q"


REFUSED_ARGUMENTS: list[tuple[Arguments, str]] = [
    ({"hash-header": "h", "hash-property": "message_id"}, "hash-header and hash-property are mutually exclusive"),
    ({"hash-property": "app_id"}, "Unsupported property: app_id"),
    ({"hash-property": 1}, "hash-property must be a string"),
    ({"hash-header": None}, "hash-header must be a string"),
]


@pytest.mark.parametrize(("arguments", "text"), REFUSED_ARGUMENTS, ids=[row[1] for row in REFUSED_ARGUMENTS])
def test_invalid_arguments_are_refused(arguments: Arguments, text: str) -> None:
    with pytest.raises(PreconditionFailed) as refusal:
        ConsistentHash(arguments)
    assert str(refusal.value) == text
