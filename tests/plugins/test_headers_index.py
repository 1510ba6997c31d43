"""The index of the headers exchange finds the bindings that checking each of them finds, and checks few of them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.api import Binding
from gateway.testing import StandIn, plain_message, stand_in_binding
from gateway_exchanges import headers
from gateway_exchanges.headers import Headers, comparable

NAMES = st.sampled_from(["a", "b", "x-c"])
VALUES = st.sampled_from([None, 1, 1.0, True, "1", b"1", [1, "x"], {"k": [1]}])
TABLES = st.dictionaries(NAMES, VALUES, max_size=3)
MODES = st.sampled_from(["all", "any", "all-with-x", "any-with-x"])


def matches(arguments: dict[str, Any], table: dict[str, Any]) -> bool:
    """Check one binding as RabbitMQ documents it."""
    mode = arguments["x-match"]
    outcomes = [
        name in table and (value is None or comparable(value) == comparable(table[name]))
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
    assert not exchange._rule_by_terms
    assert not exchange._rules_by_requirement


def test_a_message_is_compared_with_few_of_many_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []
    matches = headers._Rule.matches
    monkeypatch.setattr(headers._Rule, "matches", lambda rule, table: compared.append(rule) or matches(rule, table))
    exchange = Headers({})
    tables: list[dict[str, Any]] = [{"type": "order", "id": number} for number in range(500)]
    for binding in bindings_of([("all", table) for table in tables] + [("all", {"type": "order"})] * 500):
        exchange.bind(binding)
    found = exchange.route(plain_message("k", {"type": "order", "id": 7, "other": "x"}))
    assert len(found) == 501
    assert len(compared) <= 3
