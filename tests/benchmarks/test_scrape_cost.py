"""The cost of scrapes is computed from pairs of windows."""

import pytest

from benchmarks.load.scrape_cost import Pair, Window, _shown, _spread


def test_a_ratio_compares_messages_for_a_second_of_time() -> None:
    pair = Pair(scraped=Window(9_000, 0.5, 1.25), quiet=Window(10_000, 0.5, 1.0))
    assert pair.cpu_ratio == pytest.approx(0.9)
    assert pair.wall_ratio == pytest.approx(0.72)


def test_a_scrape_in_one_of_five_windows_costs_a_fifth() -> None:
    assert _spread(0.95, 1) == pytest.approx(0.95)
    assert _spread(0.95, 5) == pytest.approx(0.99)


def test_one_spoiled_window_does_not_change_the_median() -> None:
    assert _shown([0.98] * 9 + [0.2]).startswith("0.9800 | ")
