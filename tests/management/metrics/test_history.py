"""The history of a subject: samples, rates and averages of a span of time."""

import pytest

from gateway.management.http.errors import HttpError
from gateway.management.statistics.history import History, Span, Trend, spans_of

SPAN = {"msg_rates": Span(20, 5)}


def history_of(*samples: tuple[float, int], name: str = "publish", keep: int = 100) -> History:
    """Return a history of samples (time, count)."""
    history = History()
    for when, count in samples:
        history.record(when, {name: count}, keep, 600)
    return history


def test_the_rate_is_computed_from_the_last_two_samples() -> None:
    assert history_of((0, 0), (5, 10), (10, 40)).rate("publish") == 6.0
    assert history_of((0, 7)).rate("publish") == 0.0
    assert history_of((0, 7), (5, 9)).rate("nothing") == 0.0


def test_a_gauge_may_decrease_and_a_decreasing_counter_resets_the_history() -> None:
    assert history_of((0, 50), (5, 10), name="messages").rate("messages") == -8.0
    fallen = history_of((0, 50), (5, 10))
    assert (fallen.rate("publish"), len(fallen)) == (0.0, 1)


def test_samples_without_changes_are_not_stored() -> None:
    history = history_of((0, 3), *((float(when), 3) for when in range(5, 500, 5)))
    assert (len(history), history.rate("publish"), history.changed_at_s, history.sampled_at_s) == (1, 0.0, 0.0, 495.0)


def test_the_number_and_the_age_of_samples_are_limited() -> None:
    assert len(history_of(*((float(n), n) for n in range(50)), keep=10)) == 10
    history = history_of(*((float(n), n) for n in range(0, 2000, 5)), keep=200)
    assert len(history) <= 600 / 5 + 1
    assert history.samples("publish", [1995.0, 1400.0]) == [1995, 1400]


def test_samples_that_were_dropped_for_lack_of_room_are_not_zero() -> None:
    history = history_of(*((float(n), n * 10) for n in range(0, 60, 5)), keep=3)
    assert history.samples("publish", [55.0, 50.0, 45.0, 40.0, 10.0]) == [550, 500, 450, 450, 450]
    history.record(60.0, {"publish": 1}, 3, 600)  # another subject with the same name
    assert history.samples("publish", [60.0, 55.0]) == [1, 0]


def test_a_value_at_a_time_is_that_of_the_last_sample_before() -> None:
    history = history_of((0, 5), (5, 10), (11, 20))
    assert history.samples("publish", [12.0, 11.0, 10.9, 5.0, 4.9, 0.0, -1.0]) == [20, 20, 10, 10, 5, 5, 0]
    assert history.samples("nothing", [12.0, 0.0]) == [0, 0]


def test_a_span_has_the_fields_of_rabbitmq() -> None:
    history = history_of((100, 0), (105, 10), (110, 40), (115, 40))
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


def test_without_a_span_only_the_rate_is_shown() -> None:
    history = history_of((0, 0), (5, 10))
    assert Trend(history, SPAN, 5, 5).details("publish", "lengths") == {"rate": 2.0}
    assert Trend(None).details("publish", "lengths") == {"rate": 0.0}


def test_one_sample_has_no_average() -> None:
    details = Trend(history_of((0, 4)), {"lengths": Span(3, 5)}, 10, 10).details("publish", "lengths")
    assert details == {"rate": 0.0, "samples": [{"sample": 4, "timestamp": 10_000}]}


def test_long_spans_use_the_long_history() -> None:
    long = history_of((0, 1), (3600, 2))
    trend = Trend(history_of((3600, 2)), {"lengths": Span(3600, 1800)}, 3600, 3600, long)
    assert [each["sample"] for each in trend.details("publish", "lengths")["samples"]] == [2, 1, 1]


SPANS = [
    ({}, {}),
    ({"lengths_age": "60"}, {}),
    ({"lengths_age": "abc", "lengths_incr": "5"}, {}),
    ({"lengths_age": "60", "lengths_incr": "5"}, {"lengths": Span(60, 5)}),
    ({"data_rates_age": "2500", "data_rates_incr": "5"}, {"data_rates": Span(2500, 5)}),
]


@pytest.mark.parametrize(("query", "spans"), SPANS)
def test_spans_are_parsed_from_the_query(query: dict[str, str], spans: dict[str, Span]) -> None:
    assert spans_of(query) == spans


@pytest.mark.parametrize(("age", "increment"), [("60", "0"), ("-1", "5"), ("2506", "5"), ("100000", "1")])
def test_an_invalid_span_is_refused(age: str, increment: str) -> None:
    with pytest.raises(HttpError, match=f"Invalid range parameters: age {age}, incr {increment}"):
        spans_of({"msg_rates_age": age, "msg_rates_incr": increment})
