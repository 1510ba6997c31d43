"""Filters of names in listings, and the cost of patterns."""

from itertools import count

import pytest

from gateway.management.http.errors import HttpError
from gateway.management.http.name_filter import MAX_PATTERN_LENGTH, NamePattern, name_filter

NAMES = ["amq.gen-1", "Orders.eu", "orders.us", "orders(old)"]

WANTED = [
    pytest.param({"name": "ORDERS"}, NAMES[1:], id="case does not matter"),
    pytest.param({"name": "s(o"}, NAMES[3:], id="text is matched literally"),
    pytest.param({"name": "^orders", "use_regex": "false"}, [], id="a pattern needs use_regex=true"),
    pytest.param({"name": "^orders[.]", "use_regex": "true"}, NAMES[1:3], id="case does not matter in patterns"),
    pytest.param({"name": "s.(EU|old)", "use_regex": "true"}, [NAMES[1], NAMES[3]], id="somewhere in the name"),
    pytest.param({"name": "^(?!amq[.])", "use_regex": "true"}, NAMES[1:], id="negative lookahead"),
    pytest.param({"name": r"^[\w-]{3}[.].{5,100}$", "use_regex": "true"}, NAMES[:1], id="counts"),
]


@pytest.mark.parametrize(("query", "names"), WANTED)
def test_names_are_filtered(query: dict[str, str], names: list[str]) -> None:
    matches = name_filter(query)
    assert matches is not None
    assert [name for name in NAMES if matches(name)] == names


@pytest.mark.parametrize("query", [{}, {"name": ""}, {"name": "", "use_regex": "true"}, {"use_regex": "true"}])
def test_without_a_name_there_is_no_filter(query: dict[str, str]) -> None:
    assert name_filter(query) is None


UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"


@pytest.mark.parametrize("pattern", [f"^amq[.]gen-{UUID}$", f"({UUID}){{2}}", ".{255}", r"(\d{1,3}[.]){3}\d{1,3}"])
def test_patterns_with_usual_repetitions_are_accepted(pattern: str) -> None:
    assert not NamePattern(pattern).matches("orders")


REFUSED = [
    ("[", "invalid regular expression "),
    ("a{2}{3}", "invalid regular expression "),
    ("a{5,4}", "invalid regular expression "),
    (r"([a-z])\.\1", "invalid regular expression "),
    ("(" * MAX_PATTERN_LENGTH, "invalid regular expression "),
    ("\ud800", "invalid regular expression "),
    ("a" * (MAX_PATTERN_LENGTH + 1), "is a regular expression of more than 500 characters"),
    ("(.{999}){999}", "invalid regular expression "),
    ("{999}" * 99, "invalid regular expression "),
    ("a{4294967294}", "invalid regular expression "),
]


@pytest.mark.parametrize(("pattern", "reason"), REFUSED)
def test_an_invalid_or_too_long_pattern_is_refused(pattern: str, reason: str) -> None:
    with pytest.raises(HttpError) as refusal:
        NamePattern(pattern)
    assert refusal.value.status == 400
    assert str(refusal.value.reason).startswith((f"'name' {reason}", f"'name': {reason}"))
    assert "\n" not in str(refusal.value.reason)


@pytest.mark.parametrize("pattern", ["(a|aa)+$", "(a*)*b", "(.*.*)*c", "^(([a-z])+.)+[A-Z]([a-z])+$"])
def test_a_pattern_that_would_backtrack_is_matched_in_linear_time(pattern: str) -> None:
    """A backtracking engine would take years."""
    matches = NamePattern(pattern).matches
    for _ in range(1000):
        matches("a" * 200 + "!")


def test_the_names_of_a_listing_share_the_time_limit() -> None:
    seconds = count(step=0.2)  # the clock advances by 0.2 seconds at each call
    pattern = NamePattern("a", budget_s=0.5, clock=lambda: next(seconds))
    assert pattern.matches("a")
    assert not pattern.matches("b")
    with pytest.raises(HttpError, match="takes too long"):
        pattern.matches("a")


def test_fast_searches_do_not_use_up_the_time_limit() -> None:
    seconds = count(step=0.000_009)
    pattern = NamePattern("a", budget_s=0.5, clock=lambda: next(seconds))
    assert all(pattern.matches("a") for _ in range(100_000))
