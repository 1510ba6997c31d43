"""Definitions are decoded in steps, with the same result as in one call."""

import json
from collections.abc import Generator
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.definitions import check, parse_definitions, scan
from gateway.kernel.errors import ConfigurationError

VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)
MARKS = st.text(alphabet='{}[]",: 1n\n\\', max_size=30)


def finished(steps: Generator[None, None, Any]) -> tuple[Any, int]:
    """Return the result of all steps and their number."""
    for count in range(100_000):
        try:
            next(steps)
        except StopIteration as end:
            return end.value, count
    raise AssertionError("the steps did not end")


@given(value=VALUES, indent=st.none() | st.just(2))
@example(value={"a": [], "b": {}, "c": [{}, []]}, indent=None)
def test_a_document_is_decoded_as_by_the_standard_library(value: Any, indent: int | None) -> None:
    assert finished(scan(json.dumps(value, indent=indent)))[0] == value


@given(text=MARKS)
@example('{"a":1,"a":2}')
@example('{"a":[1,]}')
@example('{"a":[1 2]}')
@example('{"a" 1}')
@example('{"a":1')
@example("{1:1}")
@example('{"a":1,}')
@example("{} {}")
@example("")
def test_only_malformed_json_is_refused(text: str) -> None:
    try:
        expected = json.loads(text)
    except ValueError:
        with pytest.raises(ValueError, match=r"line \d+ column \d+"):
            finished(scan(text))
    else:
        assert finished(scan(text))[0] == expected


def test_each_entry_of_a_list_takes_one_step() -> None:
    _, steps = finished(scan(json.dumps({"queues": [{"name": "q"}] * 500})))
    assert steps >= 500


def test_entries_are_checked_in_batches() -> None:
    definitions, steps = finished(check({"queues": [{"name": f"q{number}"} for number in range(500)]}, "f"))
    assert steps >= 10
    assert [queue.name for queue in definitions.queues] == [f"q{number}" for number in range(500)]
    assert definitions.users == []


@pytest.mark.parametrize("number", [0, 49, 50, 123, 149])
def test_an_error_is_reported_with_its_place_in_the_whole_document(number: int) -> None:
    queues: list[Any] = [{"name": "q"} for _ in range(150)]
    queues[number] = {"name": 3}
    with pytest.raises(ConfigurationError, match=rf"^f: queues\[{number}\]\.name: must be a valid string, not 3$"):
        finished(check({"queues": queues}, "f"))


def test_all_errors_are_reported_at_once() -> None:
    queues: list[Any] = [{"name": "q"} for _ in range(120)]
    queues[3], queues[110] = {}, 7
    with pytest.raises(ConfigurationError) as caught:
        parse_definitions(json.dumps({"queues": queues, "users": {}}), "f")
    assert str(caught.value).splitlines() == [
        "f: users: must be an array, not {}",
        "f: queues[3].name: is missing",
        "f: queues[110]: must be an object, not 7",
    ]


@pytest.mark.parametrize("text", ["[]", "3", "null"])
def test_a_document_must_be_an_object(text: str) -> None:
    with pytest.raises(ConfigurationError, match="the document: must be an object"):
        parse_definitions(text, "f")
