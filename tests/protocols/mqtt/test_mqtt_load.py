"""Averages over one, five and fifteen minutes, against what Mosquitto's arithmetic gives."""

from math import exp

import pytest

from gateway_mqtt.load import SPANS, Load


def test_nothing_goes_on_at_first() -> None:
    assert Load().per_minute == {"1min": 0.0, "5min": 0.0, "15min": 0.0}


@pytest.mark.parametrize(
    ("span", "expected"),
    [
        # 100 events in the first 10 s are 600 a minute, of which an average takes 1 - exp(-10 / span)
        pytest.param("1min", 92.11, id="1min"),
        pytest.param("5min", 19.67, id="5min"),
        pytest.param("15min", 6.63, id="15min"),
    ],
)
def test_an_average_begins_to_move_towards_the_rate(span: str, expected: float) -> None:
    load = Load()
    load.reach(100, 10)
    assert load.per_minute[span] == pytest.approx(expected, abs=0.005)


@pytest.mark.parametrize("span", SPANS)
def test_a_steady_rate_is_reached_in_the_end(span: str) -> None:
    load = Load()
    for number in range(1, 1001):
        load.reach(50 * number, 10)
    assert load.per_minute[span] == pytest.approx(300, rel=0.001)


def test_silence_wears_an_average_off_by_its_span() -> None:
    load = Load()
    load.reach(600, 60)
    before = load.per_minute["5min"]
    load.reach(600, 300)
    assert load.per_minute["5min"] == pytest.approx(before * exp(-1))


@pytest.mark.parametrize("span", SPANS)
def test_how_often_one_looks_does_not_matter_to_a_steady_rate(span: str) -> None:
    often, seldom = Load(), Load()
    for number in range(1, 61):
        often.reach(number, 1)
    seldom.reach(60, 60)
    assert often.per_minute[span] == pytest.approx(seldom.per_minute[span])
