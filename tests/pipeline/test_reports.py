"""Reports: numbers in words, plots that outliers do not flatten, and the script that lets readers zoom."""

import base64
import hashlib
import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pandas
import pytest

from gateway.management.resources.spark.pipeline_runs import REPORTS_SCRIPT
from gateway_spark.reports import plots
from gateway_spark.reports.page import SHOWN, PageSection, page, script
from gateway_spark.reports.units import duration, heading, options_in_words, share, size
from tests.interop.tools import program
from tests.ui.browser import chromium

START = datetime(2024, 1, 1, tzinfo=UTC)
HOURS = [START + timedelta(hours=hour) for hour in range(200)]

DURATIONS = [
    (0, "0 s"),
    (0.0204, "20.4 ms"),
    (1.5, "1.5 s"),
    (59.9, "59.9 s"),
    (60, "1 min"),
    (250, "4 min 10 s"),
    (6 * 3600 + 720, "6 h 12 min"),
    (86_400, "1 day"),
    (30 * 3600, "1 day 6 h"),
    (362 * 86_400 + 3600, "362 days"),
    (-90, "-1 min 30 s"),
]


@pytest.mark.parametrize(("seconds", "words"), DURATIONS)
def test_a_duration_is_written_in_words(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_sizes_and_shares_have_units() -> None:
    assert [size(640), size(1536), size(5 * 2**20)] == ["640 B", "1.5 KiB", "5.0 MiB"]
    assert [share(0), share(0.0123), share(0.5)] == ["0.0%", "1.23%", "50.0%"]


def test_columns_are_named_with_their_unit() -> None:
    names = ("silence_s", "to_deliver_p99", "routing_key")
    assert [heading(name) for name in names] == ["silence", "to deliver p99, ms", "routing key"]


def test_options_in_seconds_are_durations() -> None:
    assert options_in_words({"session_gap": 7200.0, "by": ["a", "b"]}) == "session-gap = 2 h, by = a, b"


def of_section(section: PageSection) -> str:
    return page("job", "summary", {}, [], [section], "")


def test_values_of_a_table_have_their_units() -> None:
    table = pandas.DataFrame({"device": ["a"], "silence_s": [362 * 86_400.0], "redelivered": [0.25], "bytes": [2048]})
    shown = of_section(PageSection("Silent", table=table))
    assert all(f">{text}<" in shown for text in ("362 days", "25.0%", "2.0 KiB", "silence"))


def test_a_long_table_tells_how_many_rows_are_left_out() -> None:
    shown = of_section(PageSection("Rows", table=pandas.DataFrame({"n": range(SHOWN + 5)})))
    assert "and 5 rows more in the Parquet files" in shown


def test_an_empty_table_says_that_it_has_no_rows() -> None:
    shown = of_section(PageSection("Silent", table=pandas.DataFrame({"device": []})))
    assert ">device<" in shown
    assert "no rows" in shown
    assert "no rows" not in of_section(PageSection("Silent", table=pandas.DataFrame({"device": ["a"]})))


def numbers_of(figure: str) -> dict[str, Any]:
    (text,) = re.findall(r'<script type="application/json">(.*?)</script>', figure)
    numbers: dict[str, Any] = json.loads(text)
    return numbers


def test_a_plot_has_its_numbers_in_order_of_time() -> None:
    plot = numbers_of(plots.lines("t", {"a": (HOURS[2::-1], [3.0, float("nan"), 1.0])}, unit="degrees"))
    (series,) = plot["series"]
    assert series["x"] == [hour.timestamp() for hour in HOURS[:3]]
    assert series["y"] == [1.0, None, 3.0]
    assert (plot["unit"], plot["time"], plot["range"]) == ("degrees", True, None)


def test_an_outlier_does_not_flatten_a_plot() -> None:
    values = [10.0 + hour % 7 for hour in range(200)]
    values[50] = 1048.0
    figure = plots.lines("wind", {"EWR": (HOURS, values)})
    low, high = numbers_of(figure)["range"]
    assert low < 10 <= 16 < high < 20
    assert "1 value is beyond the axis, the farthest at 1,048." in figure


def test_a_plot_without_outliers_shows_everything() -> None:
    figure = plots.points("p", {"a": (HOURS, [float(hour) for hour in range(200)])})
    assert numbers_of(figure)["range"] is None
    assert "beyond the axis" not in figure


def test_a_single_window_is_visible_and_its_axis_is_short() -> None:
    figure = plots.lines("rates", {"publish": (HOURS[:1], [1000.0])})
    assert "2025" not in figure
    assert figure.count("<use") > 0 or "path" in figure  # a mark
    assert "00:00" in figure


def test_very_long_plots_are_only_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plots, "MOST_NUMBERS", 10)
    figure = plots.lines("t", {"a": (HOURS, [1.0] * 200)})
    assert figure.startswith("<svg")
    assert "<script" not in figure


def test_lopsided_bars_are_on_a_logarithmic_axis() -> None:
    assert "logarithmic" in plots.bars("b", {"a": 1e6, "b": 10, "c": 5, "d": 3})
    assert "logarithmic" not in plots.bars("b", {"a": 20, "b": 10})


def test_names_from_messages_end_no_element() -> None:
    name = "</script><script>alert(1)</script>"
    shown = of_section(PageSection("Plot", plots=[plots.lines("t", {name: (HOURS, [1.0] * 200)})]))
    assert name not in shown
    assert numbers_of(shown)["series"][0]["label"] == name


def test_only_a_page_with_a_plot_to_zoom_has_the_script() -> None:
    zoomed = of_section(PageSection("Plot", plots=[plots.lines("t", {"a": (HOURS, [1.0] * 200)})]))
    assert zoomed.count("<script>") == 1
    assert "<script" not in of_section(PageSection("Bars", plots=[plots.bars("t", {"a": 1})]))


def test_the_broker_permits_exactly_the_script_of_a_report() -> None:
    zoomed = of_section(PageSection("Plot", plots=[plots.lines("t", {"a": (HOURS, [1.0] * 200)})]))
    (content,) = re.findall(r"<script>(.*?)</script>", zoomed, re.DOTALL)
    assert content == script()
    digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
    assert f"sha256-{digest}" == REPORTS_SCRIPT


@pytest.mark.parametrize(("hours", "shown_s"), [(1, 600), (2, 3600)], ids=["one time", "two times"])
def test_the_time_axis_of_a_plot_fits_its_points(tmp_path: Path, hours: int, shown_s: float) -> None:
    plot = plots.lines("t", {"a": (HOURS[:hours], [1.0] * hours), "b": (HOURS[:hours], [2.0] * hours)})
    found = of_section(PageSection("Plot", plots=[plot])).replace("const chart =", "const chart = window.chart =")
    (tmp_path / "report.html").write_text(found, encoding="utf-8")
    program("chromium"), program("chromedriver")
    with chromium(f"file://{tmp_path}") as browser:
        browser.driver.get(f"{browser.address}/report.html")
        low, high = browser.driver.execute_script("const {min, max} = chart.scales.x; return [min, max]")
    middle = START + (HOURS[hours - 1] - START) / 2
    assert (low, high) == (middle.timestamp() - shown_s / 2, middle.timestamp() + shown_s / 2)
