"""The index of the headers exchange finds the bindings that checking each of them finds, and checks few of them."""

from math import nan
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.api import Binding
from gateway.testing import StandIn, plain_message, stand_in_binding
from gateway_exchanges.headers_index import Headers
from gateway_exchanges.headers_requirements import comparable

NAMES = st.sampled_from(["a", "b", "x-c"])
VALUES = st.sampled_from([None, 0, 1, 1.0, True, False, "1", b"1", "", [1, "x"], {"k": [1]}, nan])
TABLES = st.dictionaries(NAMES, VALUES, max_size=3)
MODES = st.sampled_from(["all", "any", "all-with-x", "any-with-x"])


def matches(arguments: dict[str, Any], table: dict[str, Any]) -> bool:
    """Check one binding as RabbitMQ documents it."""
    mode = arguments["x-match"]
    outcomes = [
        name in table and (value is None or (value == value and comparable(value) == comparable(table[name])))
        for name, value in arguments.items()
        if name != "x-match" and (mode.endswith("-with-x") or not name.startswith("x-"))
    ]
    return any(outcomes) if mode.startswith("any") else all(outcomes)


def bindings_of(rules: list[tuple[str, dict[str, Any]]]) -> list[Binding]:
    return [
        stand_in_binding(StandIn(f"q{number}"), arguments={"x-match": mode, **table})
        for number, (mode, table) in enumerate(rules)
    ]


@given(st.lists(st.tuples(MODES, TABLES), max_size=8), st.lists(TABLES, max_size=4), st.integers(0, 8))
def test_the_index_finds_what_checking_each_binding_finds(
    rules: list[tuple[str, dict[str, Any]]], tables: list[dict[str, Any]], removed: int
) -> None:
    exchange, bindings = Headers({}), bindings_of(rules)
    for binding in bindings:
        exchange.bind(binding)
    for binding in bindings[:removed]:
        exchange.unbind(binding)
    for table in tables:
        found = exchange.route(plain_message("k", table))
        expected = {each.destination for each in bindings[removed:] if matches(dict(each.arguments), table)}
        assert set(found) == expected
    for binding in bindings[removed:]:
        exchange.unbind(binding)
    assert not exchange._unconditional
    assert not exchange._any_by_name
    assert not exchange._shape_by_names
    assert not exchange._shapes_by_name


@pytest.mark.parametrize("mode", ["all", "any"])
def test_a_message_is_compared_with_few_of_many_bindings(mode: str) -> None:
    """The index has the bindings of two headers as one shape with a table, or directly under their values."""
    exchange = Headers({})
    tables: list[dict[str, Any]] = [{"a": number // 30, "b": number % 30} for number in range(900)]
    for binding in bindings_of([(mode, table) for table in tables]):
        exchange.bind(binding)
    found = list(exchange.route(plain_message("k", {"a": 7, "b": 8, "c": 9})))
    assert len(exchange._shape_by_names) == (1 if mode == "all" else 0)
    assert len(found) == (1 if mode == "all" else 59)


def test_shapes_are_found_by_the_name_that_few_others_have() -> None:
    exchange = Headers({})
    for binding in bindings_of([("all", {"type": "order", f"id{number}": 1}) for number in range(500)]):
        exchange.bind(binding)
    assert max(map(len, exchange._shapes_by_name.values())) <= 2
    assert len(list(exchange.route(plain_message("k", {"type": "order", "id7": 1})))) == 1
