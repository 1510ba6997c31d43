"""Statistics of turns: counts by length, the longest with its cause, and reports of long ones."""

import pytest

from gateway.net.turn_watch import TurnWatch


@pytest.fixture
def watch() -> TurnWatch:
    return TurnWatch()


def test_the_cause_of_the_longest_turn_is_its_longest_part(watch: TurnWatch) -> None:
    watch.part("connection a", 0.02)
    watch.part("connection b", 0.05)
    watch.part("connection c", 0.01)
    watch.ended(0.09)
    watch.ended(0.001)
    assert (watch.longest_s, watch.longest_cause) == (0.09, "connection b")


def test_a_part_is_not_the_cause_of_a_later_turn(watch: TurnWatch) -> None:
    watch.part("connection a", 0.02)
    watch.ended(0.03)
    watch.ended(0.05)
    assert (watch.longest_s, watch.longest_cause) == (0.05, "")


def test_a_turn_over_a_tenth_of_a_second_is_reported_with_its_cause(watch: TurnWatch) -> None:
    told: list[tuple[float, str]] = []
    watch.on_slow = lambda seconds, cause: told.append((seconds, cause))
    watch.ended(0.1)
    watch.part("background work purge", 0.15)
    watch.ended(0.2)
    assert told == [(0.2, "background work purge")]
    assert watch.slow_turns == 1


def test_the_returned_99th_percentile_is_at_most_twice_the_exact_one(watch: TurnWatch) -> None:
    for _ in range(990):
        watch.ended(0.0009)
    for _ in range(10):
        watch.ended(0.05)
    assert 0.0009 <= watch.quantile_s(0.99) <= 0.0018
    assert watch.quantile_s(1.0) == 0.05


def test_the_recent_longest_turn_is_dropped_after_two_periods(watch: TurnWatch) -> None:
    watch.ended(0.05)
    watch.start_period()
    assert watch.recent_longest_s == 0.05
    watch.ended(0.01)
    watch.start_period()
    assert watch.recent_longest_s == 0.01
    assert watch.longest_s == 0.05


def test_the_recent_99th_percentile_is_that_of_the_last_two_periods(watch: TurnWatch) -> None:
    for _ in range(100):
        watch.ended(0.05)
    watch.start_period()
    for _ in range(300):
        watch.ended(0.0009)
    assert (watch.recent_quantile_s(0.99), watch.quantile_s(0.99)) == (0.05, 0.05)
    watch.start_period()
    assert 0.0009 <= watch.recent_quantile_s(0.99) <= 0.0018
    assert watch.quantile_s(0.99) == 0.05
    watch.start_period()
    assert watch.recent_quantile_s(0.99) == 0


def test_listings_show_milliseconds(watch: TurnWatch) -> None:
    watch.part("routing in exchange 'x' of type headers", 0.02)
    watch.ended(0.0234)
    assert watch.shown() == {
        "count": 1,
        "p99_ms": 23.4,
        "p99_recent_ms": 23.4,
        "longest_ms": 23.4,
        "longest_cause": "routing in exchange 'x' of type headers",
        "longest_recent_ms": 23.4,
        "over_100_ms": 0,
    }


def test_nothing_is_shown_before_the_first_turn(watch: TurnWatch) -> None:
    assert watch.shown()["p99_ms"] == 0.0
