"""The encoding of values is lossless."""

import json
import math
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.kernel.messages import values
from gateway.kernel.messages.message import Value

TEXTS = st.text(alphabet=st.characters(exclude_categories=()), max_size=8) | st.sampled_from(
    ["$", "\ud83d\ude00", "\x00"]
)
OFFSETS = st.timedeltas(min_value=timedelta(hours=-23), max_value=timedelta(hours=23)).map(timezone)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(min_value=-(10**200), max_value=10**200),
    st.floats(),
    TEXTS,
    st.binary(max_size=20),
    st.decimals(allow_nan=False),
    st.datetimes(timezones=st.none() | OFFSETS),
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4), max_leaves=12
)


def same(left: Value, right: Value) -> bool:
    """Return whether values and their types are equal; NaN equals NaN here."""
    if type(left) is not type(right):
        return False
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return list(left) == list(right) and all(same(left[name], right[name]) for name in left)
    if isinstance(left, float) and isinstance(right, float):
        return str(left) == str(right)
    return left == right


@given(st.dictionaries(TEXTS, VALUES, max_size=4))
def test_every_value_is_decoded_as_it_was_encoded(fields: dict[str, Value]) -> None:
    written = values.dumps(fields)
    assert same(values.loads(written), fields)
    assert values.dumps(values.loads(written)) == written


@given(st.dictionaries(TEXTS, VALUES, max_size=5), st.randoms())
def test_a_key_does_not_depend_on_the_order_of_its_mappings(arguments: dict[str, Value], random) -> None:  # type: ignore[no-untyped-def]
    items = list(arguments.items())
    random.shuffle(items)
    assert values.dumps_key(["q", arguments]) == values.dumps_key(["q", dict(items)])


def test_keys_that_differ_only_in_type_are_distinct() -> None:
    keys: list[list[Value]] = [[1], [1.0], [True], ["1"], [b"1"], [Decimal(1)], [[1]]]
    assert len({values.dumps_key(key) for key in keys}) == len(keys)


@pytest.mark.parametrize("text", ["NaN", "sNaN", "-NaN123", "Infinity", "-0", "1E+999999", "1.10"])
def test_a_decimal_keeps_its_exact_form(text: str) -> None:
    value = values.loads(values.dumps({"x": Decimal(text)}))["x"]
    assert isinstance(value, Decimal)
    assert str(value) == text


def test_an_integer_may_exceed_pythons_limit_for_decimal_digits() -> None:
    fields: dict[str, Value] = {"x": 10**5000, "y": -(10**5000)}
    assert values.loads(values.dumps(fields)) == fields


def test_a_mapping_that_looks_like_a_tag_stays_a_mapping() -> None:
    fields: dict[str, Value] = {"x": {"$": ["bytes", "aGk="]}, "y": {"$": {"$": 1}, "z": 2}, "$": b"hi"}
    assert values.loads(values.dumps(fields)) == fields


def test_the_encoding_is_json_that_other_tools_can_read() -> None:
    fields: dict[str, Value] = {
        "name": "café",
        "at": datetime(2024, 5, 1, tzinfo=UTC),
        "limit": math.inf,
        "ids": [1, 2],
    }
    assert json.loads(values.dumps(fields), parse_constant=pytest.fail) == {
        "name": "café",
        "at": {"$": ["datetime", ["2024-05-01T00:00:00", 0]]},
        "limit": {"$": ["float", "inf"]},
        "ids": [1, 2],
    }


@pytest.mark.parametrize("value", [(1, 2), {1: "one"}, object(), {"a": {1, 2}}], ids=repr)
def test_unsupported_values_are_refused(value: Value) -> None:
    with pytest.raises(TypeError):
        values.dumps({"x": value})


@pytest.mark.parametrize("data", [b"[]", b"{", b'{"x":{"$":["pickle","x"]}}', b'{"x":{"$":["int","1"],"y":1}}'])
def test_invalid_encodings_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r".*"):
        values.loads(data)
