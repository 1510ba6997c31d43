"""x-rtopic: the routing key is a pattern of words, binding keys are plain words."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.testing import StandIn, check_exchange_type, plain_message, stand_in_binding
from gateway_exchanges.reverse_topic import ReverseTopic
from gateway_exchanges.topic import Topic

ROWS = [
    # routing key    binding key        matches
    ("dog",         "dog",             True),
    ("dog",         "dog.puppy",       False),
    ("dog.*",       "dog.puppy",       True),
    ("dog.*",       "dog",             False),
    ("dog.*",       "dog.puppy.brown", False),
    ("dog.#",       "dog",             True),
    ("dog.#",       "dog.puppy.brown", True),
    ("#.brown",     "dog.puppy.brown", True),
    ("#.brown",     "brown",           True),
    ("dog.#.brown", "dog.brown",       True),
    ("dog.#.brown", "dog.brown.fur",   False),
    ("#.*",         "dog",             True),
    ("#.*",         "",                False),
    ("*.#.*",       "dog",             False),
    ("#",           "",                True),
    ("*",           "",                False),
    ("",            "",                True),
    ("",            "dog",             False),
    ("#",           "dog.puppy",       True),
    ("dog.puppy",   "dog.*",           False),
    ("dog.puppy",   "#",               False),
    ("dog.*",       "dog.*",           True),
    ("d*g",         "dog",             False),
]  # fmt: skip


def is_routed(routing_key: str, binding_key: str) -> bool:
    exchange = ReverseTopic({})
    exchange.bind(stand_in_binding(StandIn("q"), binding_key))
    return bool(exchange.route(plain_message(routing_key)))


@pytest.mark.parametrize(("routing_key", "binding_key", "matches"), ROWS)
def test_a_pattern_matches_binding_keys(routing_key: str, binding_key: str, matches: bool) -> None:
    assert is_routed(routing_key, binding_key) is matches


PATTERNS = st.lists(st.sampled_from(["a", "b", "*", "#"]), max_size=6).map(".".join)
PLAIN_KEYS = [".".join(words) for count in range(5) for words in product("ab", repeat=count)]


@given(pattern=PATTERNS)
def test_it_is_the_topic_exchange_with_the_keys_exchanged(pattern: str) -> None:
    topic, reverse = Topic({}), ReverseTopic({})
    topic.bind(stand_in_binding(StandIn("q"), pattern))
    for key in PLAIN_KEYS:
        reverse.bind(stand_in_binding(StandIn(key), key))
    expected = sorted(key for key in PLAIN_KEYS if topic.route(plain_message(key)))
    assert sorted(queue.name for queue in reverse.route(plain_message(pattern))) == expected


def test_a_pattern_of_many_wildcards_visits_each_word_once() -> None:
    exchange = ReverseTopic({})
    exchange.bind(stand_in_binding(StandIn("deep"), ".".join("a" * 128)))
    assert exchange.route(plain_message(".".join(["#", "a"] * 63 + ["b"]))) == []
    assert [queue.name for queue in exchange.route(plain_message(".".join(["#", "a"] * 63)))] == ["deep"]


def test_the_type_fulfils_the_contract() -> None:
    check_exchange_type(ReverseTopic)
