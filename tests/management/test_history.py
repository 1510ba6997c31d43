"""Looks at something that is counted, and what they tell of a span of time."""

import pytest

from gateway.management.http.errors import HttpError
from gateway.management.statistics.history import History, Span, Trend, spans_of

SPAN = {"msg_rates": Span(20, 5)}


def looked(*looks: tuple[float, int], name: str = "publish", keep: int = 100) -> History:
    """A history of looks at (when, how many)."""
    history = History()
    for when, count in looks:
        history.record(when, {name: count}, keep, 600)
    return history


def test_the_rate_is_what_happened_between_the_last_two_looks() -> None:
    assert looked((0, 0), (5, 10), (10, 40)).rate("publish") == 6.0
    assert looked((0, 7)).rate("publish") == 0.0
    assert looked((0, 7), (5, 9)).rate("nothing") == 0.0


def test_levels_fall_and_counts_begin_anew() -> None:
    assert looked((0, 50), (5, 10), name="messages").rate("messages") == -8.0
    fallen = looked((0, 50), (5, 10))
    assert (fallen.rate("publish"), len(fallen)) == (0.0, 1)


def test_rest_costs_nothing_and_is_told_as_rest() -> None:
    history = looked((0, 3), *((float(when), 3) for when in range(5, 500, 5)))
    assert (len(history), history.rate("publish"), history.changed_at_s, history.sampled_at_s) == (1, 0.0, 0.0, 495.0)


def test_so_many_looks_are_kept_and_none_that_is_too_old() -> None:
    assert len(looked(*((float(n), n) for n in range(50)), keep=10)) == 10
    history = looked(*((float(n), n) for n in range(0, 2000, 5)), keep=200)
    assert len(history) <= 600 / 5 + 1
    assert history.samples("publish", [1995.0, 1400.0]) == [1995, 1400]


def test_samples_are_what_the_last_look_before_found() -> None:
    history = looked((0, 5), (5, 10), (11, 20))
    assert history.samples("publish", [12.0, 11.0, 10.9, 5.0, 4.9, 0.0, -1.0]) == [20, 20, 10, 10, 5, 5, 0]
    assert history.samples("nothing", [12.0, 0.0]) == [0, 0]


def test_a_span_is_told_as_rabbitmq_tells_it() -> None:
    history = looked((100, 0), (105, 10), (110, 40), (115, 40))
    assert Trend(history, SPAN, 116, 1_000_001).details("publish", "msg_rates") == {
        "rate": 0.0,
        "samples": [
            {"sample": 40, "timestamp": 1_000_000_000},
            {"sample": 40, "timestamp": 999_995_000},
            {"sample": 10, "timestamp": 999_990_000},
            {"sample": 0, "timestamp": 999_985_000},
            {"sample": 0, "timestamp": 999_980_000},
        ],
        "avg_rate": 2.0,
        "avg": 18.0,
    }


def test_without_a_span_there_is_a_rate_alone() -> None:
    history = looked((0, 0), (5, 10))
    assert Trend(history, SPAN, 5, 5).details("publish", "lengths") == {"rate": 2.0}
    assert Trend(None).details("publish", "lengths") == {"rate": 0.0}


def test_one_sample_has_no_average() -> None:
    details = Trend(looked((0, 4)), {"lengths": Span(3, 5)}, 10, 10).details("publish", "lengths")
    assert details == {"rate": 0.0, "samples": [{"sample": 4, "timestamp": 10_000}]}


def test_long_spans_are_told_from_the_long_history() -> None:
    long = looked((0, 1), (3600, 2))
    trend = Trend(looked((3600, 2)), {"lengths": Span(3600, 1800)}, 3600, 3600, long)
    assert [each["sample"] for each in trend.details("publish", "lengths")["samples"]] == [2, 1, 1]


SPANS = [
    ({}, {}),
    ({"lengths_age": "60"}, {}),
    ({"lengths_age": "abc", "lengths_incr": "5"}, {}),
    ({"lengths_age": "60", "lengths_incr": "5"}, {"lengths": Span(60, 5)}),
    ({"data_rates_age": "2500", "data_rates_incr": "5"}, {"data_rates": Span(2500, 5)}),
]


@pytest.mark.parametrize(("query", "spans"), SPANS)
def test_a_query_asks_for_spans(query: dict[str, str], spans: dict[str, Span]) -> None:
    assert spans_of(query) == spans


@pytest.mark.parametrize(("age", "increment"), [("60", "0"), ("-1", "5"), ("2506", "5"), ("100000", "1")])
def test_a_span_that_makes_no_sense_is_refused(age: str, increment: str) -> None:
    with pytest.raises(HttpError, match=f"Invalid range parameters: age {age}, incr {increment}"):
        spans_of({"msg_rates_age": age, "msg_rates_incr": increment})
