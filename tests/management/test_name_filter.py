"""Which names are wanted, and what patterns may cost."""

from itertools import count

import pytest

from gateway.management.http.errors import HttpError
from gateway.management.http.name_filter import MAX_PATTERN_LENGTH, NamePattern, name_filter

NAMES = ["amq.gen-1", "Orders.eu", "orders.us", "orders(old)"]

WANTED = [
    pytest.param({"name": "ORDERS"}, NAMES[1:], id="case does not matter"),
    pytest.param({"name": "s(o"}, NAMES[3:], id="text is text"),
    pytest.param({"name": "^orders", "use_regex": "false"}, [], id="use_regex=true and nothing else"),
    pytest.param({"name": "^orders[.]", "use_regex": "true"}, NAMES[1:3], id="case does not matter in patterns"),
    pytest.param({"name": "s.(EU|old)", "use_regex": "true"}, [NAMES[1], NAMES[3]], id="somewhere in the name"),
    pytest.param({"name": "^(?!amq[.])", "use_regex": "true"}, NAMES[1:], id="what is not there"),
    pytest.param({"name": r"^[\w-]{3}[.].{5,100}$", "use_regex": "true"}, NAMES[:1], id="counts"),
]


@pytest.mark.parametrize(("query", "names"), WANTED)
def test_wanted_names(query: dict[str, str], names: list[str]) -> None:
    matches = name_filter(query)
    assert matches is not None
    assert [name for name in NAMES if matches(name)] == names


@pytest.mark.parametrize("query", [{}, {"name": ""}, {"name": "", "use_regex": "true"}, {"use_regex": "true"}])
def test_without_a_name_all_are_wanted(query: dict[str, str]) -> None:
    assert name_filter(query) is None


UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"


@pytest.mark.parametrize("pattern", [f"^amq[.]gen-{UUID}$", f"({UUID}){{2}}", ".{255}", r"(\d{1,3}[.]){3}\d{1,3}"])
def test_ordinary_repeats_are_no_reason_to_refuse(pattern: str) -> None:
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
def test_what_is_no_pattern_or_too_large(pattern: str, reason: str) -> None:
    with pytest.raises(HttpError) as refusal:
        NamePattern(pattern)
    assert refusal.value.status == 400
    assert str(refusal.value.reason).startswith((f"'name' {reason}", f"'name': {reason}"))
    assert "\n" not in str(refusal.value.reason)


@pytest.mark.parametrize("pattern", ["(a|aa)+$", "(a*)*b", "(.*.*)*c", "^(([a-z])+.)+[A-Z]([a-z])+$"])
def test_a_pattern_that_backtracks_elsewhere_takes_no_time(pattern: str) -> None:
    """The time is linear in the name: it would be years in an engine that backtracks."""
    matches = NamePattern(pattern).matches
    for _ in range(1000):
        matches("a" * 200 + "!")


def test_all_names_of_a_list_share_the_time() -> None:
    seconds = count(step=0.2)  # each look at the clock is 0.2 seconds after the last
    pattern = NamePattern("a", budget_s=0.5, clock=lambda: next(seconds))
    assert pattern.matches("a")
    assert not pattern.matches("b")
    with pytest.raises(HttpError, match="takes too long"):
        pattern.matches("a")


def test_quick_searches_cost_nothing_however_many() -> None:
    seconds = count(step=0.000_009)
    pattern = NamePattern("a", budget_s=0.5, clock=lambda: next(seconds))
    assert all(pattern.matches("a") for _ in range(100_000))
