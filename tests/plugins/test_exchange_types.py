"""Each built-in exchange type routes as in its behaviour table and fulfils the common contract."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.api import Binding, Destination, ExchangeFactory, ExchangeType, PreconditionFailed, Value
from gateway.kernel.routing.exchange import Exchange
from gateway.testing.exchange_type import StandIn, check_exchange_type, plain_message, stand_in_binding
from gateway_exchanges.direct import Direct
from gateway_exchanges.fanout import Fanout
from gateway_exchanges.headers_index import Headers
from gateway_exchanges.local_random import LocalRandom
from gateway_exchanges.modulus_hash import ModulusHash
from gateway_exchanges.random_binding import RandomBinding
from gateway_exchanges.super_stream import SuperStream
from gateway_exchanges.topic import Topic

TYPES = [Direct, Fanout, Topic, Headers, LocalRandom, RandomBinding, ModulusHash, SuperStream]

BY_KEY = [
    #            type    binding key    routing key        matches
    pytest.param(Direct, "dog",         "dog",             True,  id="R12 direct: the same key"),
    pytest.param(Direct, "dog",         "dog.puppy",       False, id="R12 direct: a longer key"),
    pytest.param(Direct, "dog",         "dog.guard",       False, id="R12 direct: another longer key"),
    pytest.param(Direct, "dog",         "Dog",             False, id="R12 direct: case counts"),
    pytest.param(Direct, "dog",         "do",              False, id="R12 direct: a shorter key"),
    pytest.param(Direct, "",            "",                True,  id="R12 direct: the empty key is a key"),
    pytest.param(Direct, "",            "dog",             False, id="R12 direct: the empty key is no wildcard"),
    pytest.param(Direct, "#",           "dog",             False, id="R12 direct: has no wildcards"),
    pytest.param(Direct, "é",           "e\u0301",         False, id="R12 direct: bytes, not looks"),
    pytest.param(Fanout, "dog",         "cat",             True,  id="R13 fanout: another key"),
    pytest.param(Fanout, "dog",         "",                True,  id="R13 fanout: no key"),
    pytest.param(Fanout, "",            "dog",             True,  id="R13 fanout: bound without key"),
    pytest.param(Topic,  "dog",         "dog",             True,  id="R14 topic: the same words"),
    pytest.param(Topic,  "dog",         "dog.puppy",       False, id="R14 topic: a word too many"),
    pytest.param(Topic,  "dog.*",       "dog.puppy",       True,  id="R14 topic: * is a word"),
    pytest.param(Topic,  "dog.*",       "dog",             False, id="R14 topic: * is not no word"),
    pytest.param(Topic,  "dog.*",       "dog.puppy.brown", False, id="R14 topic: * is not two words"),
    pytest.param(Topic,  "dog.*",       "dog.",            True,  id="R14 topic: an empty word is a word"),
    pytest.param(Topic,  "*.puppy",     "dog.puppy",       True,  id="R14 topic: * at the start"),
    pytest.param(Topic,  "dog.#",       "dog",             True,  id="R14 topic: # is no word"),
    pytest.param(Topic,  "dog.#",       "dog.puppy.brown", True,  id="R14 topic: # is two words"),
    pytest.param(Topic,  "#.brown",     "dog.puppy.brown", True,  id="R14 topic: # at the start"),
    pytest.param(Topic,  "dog.#.brown", "dog.brown",       True,  id="R14 topic: # in the middle"),
    pytest.param(Topic,  "dog.#.brown", "dog.brown.fur",   False, id="R14 topic: # in the middle ends"),
    pytest.param(Topic,  "#",           "",                True,  id="R14 topic: # matches the empty key"),
    pytest.param(Topic,  "*",           "",                False, id="R14 topic: * does not match the empty key"),
    pytest.param(Topic,  "",            "",                True,  id="R14 topic: the empty key is a key"),
    pytest.param(Topic,  "#",           "dog.puppy",       True,  id="R14 topic: # matches everything"),
    pytest.param(Topic,  "d*g",         "dog",             False, id="R14 topic: no wildcards within words"),
    pytest.param(Topic,  "d.g",         "dog",             False, id="R14 topic: no regular expressions"),
]  # fmt: skip

NEW_YEAR_1970 = datetime(1970, 1, 1, tzinfo=UTC)

BY_HEADERS = [
    # x-match      wanted                    headers                    matches
    (None,         {"a": 1, "b": 2},         {"a": 1, "b": 2, "c": 3},  True,  "is all by default"),
    (None,         {"a": 1, "b": 2},         {"a": 1},                  False, "is all, and one is missing"),
    ("all",        {"a": 1, "b": 2},         {"a": 1, "b": 2},          True,  "each agrees"),
    ("all",        {"a": 1, "b": 2},         {"a": 1, "b": 3},          False, "one differs"),
    ("any",        {"a": 1, "b": 2},         {"b": 2},                  True,  "one is enough"),
    ("any",        {"a": 1, "b": 2},         {"a": 2, "b": 1},          False, "none agrees"),
    ("all",        {},                       {"a": 1},                  True,  "nothing is wanted"),
    ("all",        {},                       {},                        True,  "nothing is wanted, nothing is there"),
    ("any",        {},                       {"a": 1},                  False, "nothing is wanted"),
    ("any-with-x", {},                       {"x-match": "any-with-x"}, False, "x-match is never compared"),
    ("all-with-x", {},                       {},                        True,  "x-match is never wanted"),
    ("all",        {"a": 1, "x-b": 2},       {"a": 1},                  True,  "x- is left aside"),
    ("any",        {"x-b": 2},               {"x-b": 2},                False, "x- is left aside"),
    ("all-with-x", {"a": 1, "x-b": 2},       {"a": 1},                  False, "x- is missing"),
    ("all-with-x", {"a": 1, "x-b": 2},       {"a": 1, "x-b": 2},        True,  "x- agrees"),
    ("any-with-x", {"a": 1, "x-b": 2},       {"x-b": 2},                True,  "x- is enough"),
    ("all",        {"a": None},              {"a": 0},                  True,  "void asks for presence"),
    ("all",        {"a": None},              {"a": None},               True,  "void finds void"),
    ("all",        {"a": None},              {"b": 0},                  False, "void does not find nothing"),
    ("all",        {"a": 1},                 {"a": None},               False, "void in the message is no value"),
    ("all",        {"a": 1},                 {"a": 1.0},                True,  "numbers have no type"),
    ("all",        {"a": "dog"},             {"a": b"dog"},             True,  "text and bytes have no type"),
    ("all",        {"a": NEW_YEAR_1970},     {"a": 0},                  True,  "a timestamp is its seconds"),
    ("all",        {"a": 1},                 {"a": True},               False, "true is not 1"),
    ("all",        {"a": False},             {"a": 0},                  False, "false is not 0"),
    ("all",        {"a": True},              {"a": True},               True,  "true is true"),
    ("all",        {"a": 1},                 {"a": "1"},                False, "text is no number"),
    ("all",        {"a": 1},                 {"a": Decimal(1)},         False, "a decimal is no integer"),
    ("all",        {"a": Decimal("1.50")},   {"a": Decimal("1.50")},    True,  "decimals agree"),
    ("all",        {"a": [1, {"b": "c"}]},   {"a": [1, {"b": b"c"}]},   True,  "arrays and tables agree"),
    ("all",        {"a": [1, 2]},            {"a": [2, 1]},             False, "arrays have an order"),
    ("all",        {"A": 1},                 {"a": 1},                  False, "names have a case"),
]  # fmt: skip
HEADER_IDS = [f"R15 {row[0] or 'no x-match'}: {row[-1]}" for row in BY_HEADERS]


def is_routed(exchange_type: ExchangeType, routing_key: str, headers: Mapping[str, Value] | None = None) -> bool:
    return bool(list(exchange_type.route(plain_message(routing_key, headers))))


@pytest.mark.parametrize(("factory", "binding_key", "routing_key", "matches"), BY_KEY)
def test_an_exchange_type_routes_by_key(
    factory: ExchangeFactory, binding_key: str, routing_key: str, matches: bool
) -> None:
    exchange_type = factory({})
    exchange_type.bind(stand_in_binding(StandIn("queue"), binding_key))
    assert is_routed(exchange_type, routing_key) is matches


@pytest.mark.parametrize(("x_match", "wanted", "headers", "matches", "_"), BY_HEADERS, ids=HEADER_IDS)
def test_an_exchange_type_routes_by_headers(
    x_match: str | None, wanted: dict[str, Value], headers: dict[str, Value], matches: bool, _: str
) -> None:
    exchange_type = Headers({})
    arguments = wanted if x_match is None else {"x-match": x_match, **wanted}
    exchange_type.bind(stand_in_binding(StandIn("queue"), "any key", arguments))
    assert is_routed(exchange_type, "another key", headers) is matches


@pytest.mark.parametrize(
    ("mode", "text"),
    [
        ("some", 'Invalid x-match field value <<"some">>; expected all, any, all-with-x, or any-with-x'),
        ("", "Invalid x-match field value <<>>; expected all, any, all-with-x, or any-with-x"),
        ("ALL", 'Invalid x-match field value <<"ALL">>; expected all, any, all-with-x, or any-with-x'),
        (1, "Invalid x-match field type signedint (value 1); expected longstr"),
        (True, "Invalid x-match field type bool (value true); expected longstr"),
    ],
)
def test_r15_an_invalid_x_match_is_refused_at_bind(mode: Value, text: str) -> None:
    exchange_type = Headers({})
    with pytest.raises(PreconditionFailed) as refusal:
        exchange_type.bind(stand_in_binding(StandIn("queue"), "", {"x-match": mode}))
    assert str(refusal.value) == text
    assert not is_routed(exchange_type, "")


VALUES = st.one_of(st.none(), st.booleans(), st.integers(-2, 2), st.sampled_from(["", "dog"]))
TABLES = st.dictionaries(st.sampled_from(["a", "b", "x-c"]), VALUES)


@given(wanted=TABLES, headers=TABLES)
def test_r15_any_requires_one_match_and_all_requires_all(wanted: dict[str, Value], headers: dict[str, Value]) -> None:
    def agrees(name: str) -> bool:
        want = wanted[name]
        found = headers.get(name)
        return name in headers and (want is None or (type(want) is type(found) and want == found))

    for mode, quantifier in (("all", all), ("any", any)):
        plain = quantifier(agrees(name) for name in wanted if not name.startswith("x-"))
        with_x = quantifier(agrees(name) for name in wanted)
        for x_match, expected in ((mode, plain), (f"{mode}-with-x", with_x)):
            exchange_type = Headers({})
            exchange_type.bind(stand_in_binding(StandIn("queue"), "", {"x-match": x_match, **wanted}))
            assert is_routed(exchange_type, "", headers) is expected


@pytest.mark.parametrize("factory", TYPES)
def test_every_type_fulfils_the_contract(factory: ExchangeFactory) -> None:
    check_exchange_type(factory)


@pytest.mark.parametrize("factory", [Direct, Fanout, Topic, Headers, ModulusHash, RandomBinding])
def test_a_destination_is_reached_until_its_last_binding_is_removed(
    factory: ExchangeFactory,
) -> None:
    queue = StandIn("queue")
    bindings = [stand_in_binding(queue, "k", {}), stand_in_binding(queue, "k", {"a": 1}), stand_in_binding(queue, "k")]
    exchange_type = factory({})
    for binding in bindings:
        exchange_type.bind(binding)
    for binding in bindings:
        assert is_routed(exchange_type, "k", {"a": 1})
        exchange_type.unbind(binding)
    assert not is_routed(exchange_type, "k", {"a": 1})


def test_r16_local_random_chooses_among_the_bound_queues() -> None:
    offered: list[str] = []

    def last(queues: Sequence[Destination]) -> Destination:
        offered.extend(queue.name for queue in queues)
        return queues[-1]

    exchange_type = LocalRandom({}, choose=last)
    for name in ("a", "b", "c"):
        exchange_type.bind(stand_in_binding(StandIn(name)))
    assert [queue.name for queue in exchange_type.route(plain_message("whatever"))] == ["c"]
    assert offered == ["a", "b", "c"]


@pytest.mark.parametrize("key", ["dog", " "])
def test_r16_local_random_refuses_a_binding_key(key: str) -> None:
    with pytest.raises(PreconditionFailed, match=f"Non empty binding '{key}' key not permitted"):
        LocalRandom({}).bind(stand_in_binding(StandIn("queue"), key))


def test_r16_local_random_can_be_bound_to_queues_only() -> None:
    source, other = (Exchange("/", name, "fanout", Fanout({})) for name in ("source", "other"))
    with pytest.raises(PreconditionFailed, match="Destination not found"):
        LocalRandom({}).bind(Binding(source, other, "", {}))


def test_random_chooses_among_the_bindings_whatever_their_keys() -> None:
    offered: list[str] = []

    def last(destinations: Sequence[Destination]) -> Destination:
        offered.extend(destination.name for destination in destinations)
        return destinations[-1]

    exchange_type = RandomBinding({}, choose=last)
    twice = StandIn("twice")
    for queue, key in ((twice, "x"), (StandIn("once"), "y"), (twice, "z")):
        exchange_type.bind(stand_in_binding(queue, key))
    assert [queue.name for queue in exchange_type.route(plain_message("whatever"))] == ["twice"]
    assert offered == ["twice", "once", "twice"]


def test_random_reaches_every_queue_once_per_message() -> None:
    exchange_type = RandomBinding({})
    for number in range(4):
        exchange_type.bind(stand_in_binding(StandIn(f"queue {number}")))
    routes = [exchange_type.route(plain_message("k")) for _ in range(400)]
    assert all(len(route) == 1 for route in routes)
    assert len({queue.name for route in routes for queue in route}) == 4


@given(keys=st.lists(st.text(max_size=20), min_size=1, max_size=30), order=st.permutations(range(5)))
def test_r16_a_modulus_hash_does_not_depend_on_the_order_of_binding(keys: list[str], order: list[int]) -> None:
    def chosen(numbers: list[int]) -> list[str]:
        exchange_type = ModulusHash({})
        for number in numbers:
            exchange_type.bind(stand_in_binding(StandIn(f"queue {number}")))
        return [destination.name for key in keys for destination in exchange_type.route(plain_message(key))]

    assert chosen(order) == chosen([0, 1, 2, 3, 4])


def test_r16_a_modulus_hash_distributes_about_evenly() -> None:
    exchange_type = ModulusHash({})
    for number in range(4):
        exchange_type.bind(stand_in_binding(StandIn(f"queue {number}")))
    count_by_queue: dict[str, int] = {}
    for number in range(4000):
        for queue in exchange_type.route(plain_message(f"order.{number}")):
            count_by_queue[queue.name] = count_by_queue.get(queue.name, 0) + 1
    assert len(count_by_queue) == 4
    assert all(800 < count < 1200 for count in count_by_queue.values())
