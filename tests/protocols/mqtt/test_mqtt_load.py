"""Load averages over one, five and fifteen minutes, compared with Mosquitto's formula."""

from math import exp

import pytest

from gateway_mqtt.load import SPANS, Load


def test_the_averages_start_at_zero() -> None:
    assert Load().per_minute == {"1min": 0.0, "5min": 0.0, "15min": 0.0}


@pytest.mark.parametrize(
    ("span", "expected"),
    [
        # 100 events in the first 10 s are 600 a minute; an average takes 1 - exp(-10 / span) of that
        pytest.param("1min", 92.11, id="1min"),
        pytest.param("5min", 19.67, id="5min"),
        pytest.param("15min", 6.63, id="15min"),
    ],
)
def test_an_average_moves_towards_the_rate(span: str, expected: float) -> None:
    load = Load()
    load.update(100, 10)
    assert load.per_minute[span] == pytest.approx(expected, abs=0.005)


@pytest.mark.parametrize("span", SPANS)
def test_an_average_converges_to_a_steady_rate(span: str) -> None:
    load = Load()
    for number in range(1, 1001):
        load.update(50 * number, 10)
    assert load.per_minute[span] == pytest.approx(300, rel=0.001)


def test_an_average_decays_by_its_span_without_events() -> None:
    load = Load()
    load.update(600, 60)
    before = load.per_minute["5min"]
    load.update(600, 300)
    assert load.per_minute["5min"] == pytest.approx(before * exp(-1))


@pytest.mark.parametrize("span", SPANS)
def test_the_update_interval_does_not_affect_the_average_of_a_steady_rate(span: str) -> None:
    often, seldom = Load(), Load()
    for number in range(1, 61):
        often.update(number, 1)
    seldom.update(60, 60)
    assert often.per_minute[span] == pytest.approx(seldom.per_minute[span])
