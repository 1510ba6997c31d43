"""Plots for a page: pictures in SVG, and for lines and points their numbers, with which a script lets readers zoom."""

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import escape
from typing import Any, Final

import matplotlib
import numpy
import pandas
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure

WIDTH: Final = 9.6
HEIGHT: Final = 3.2

#: Most devices in a plot with lines.
MOST_SERIES: Final = 6

#: Most numbers beside a picture: a page stays below a few megabytes.
MOST_NUMBERS: Final = 60_000

COLOURS: Final = ("#2f6fb4", "#d9822b", "#3d9a6a", "#b4435c", "#7c5cbf", "#5a6b7b")

#: A series with fewer points has a mark at each.
FEW: Final = 60

#: Values are beyond the axis if they are this many times the usual range away from it.
BEYOND: Final = 3.0

#: Bars are on a logarithmic axis if the longest is this many times the median.
LOPSIDED: Final = 100.0

#: The width of an axis of time whose points are all at one time.
MOMENT: Final = pandas.Timedelta(minutes=5)

#: Keep text as text, with a plain style.
STYLE: Final[dict[Any, Any]] = {
    "svg.fonttype": "none",
    "font.size": 9,
    "axes.grid": True,
    "grid.color": "#e6e9ee",
    "axes.edgecolor": "#c4cad3",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
}


def lines(
    title: str,
    series: Mapping[str, tuple[Sequence[Any], Sequence[float]]],
    bands: Mapping[str, tuple[Sequence[float], Sequence[float]]] | None = None,
    unit: str = "",
) -> str:
    """Plot a line for each name, over time or numbers; a band of the same name lies behind it."""
    bands = bands or {}
    values = [y for _, y in series.values()]
    shown = _usual_range([*values, *(edge for name in series if name in bands for edge in bands[name])])
    with _plot(title) as (axes, svg):
        for colour, (name, (x, y)) in zip(COLOURS, series.items(), strict=False):
            mark = "o" if len(x) <= FEW else ""
            axes.plot(x, y, color=colour, linewidth=1.1, label=name, marker=mark, markersize=3)
            if name in bands:
                axes.fill_between(x, *bands[name], color=colour, alpha=0.15, linewidth=0)
        _finish(axes, series, unit, shown)
    return _figure(title, svg, series, bands, unit, shown, is_points=False)


def points(title: str, groups: Mapping[str, tuple[Sequence[Any], Sequence[float]]], unit: str = "") -> str:
    """Plot points in the colour of their group, later groups on top."""
    shown = _usual_range([y for _, y in groups.values()])
    with _plot(title) as (axes, svg):
        for colour, (name, (x, y)) in zip(COLOURS, groups.items(), strict=False):
            axes.scatter(x, y, s=6, color=colour, label=name, linewidths=0)
        _finish(axes, groups, unit, shown)
    return _figure(title, svg, groups, {}, unit, shown, is_points=True)


def bars(title: str, values: Mapping[str, float], unit: str = "") -> str:
    """Plot a bar with its value for each name, the first on top."""
    numbers = list(values.values())
    is_lopsided = len(numbers) > 1 and min(numbers) > 0 and max(numbers) > LOPSIDED * float(numpy.median(numbers))
    with _plot(title, max(1.2, 0.5 + 0.26 * len(values))) as (axes, svg):
        drawn = axes.barh(list(values), numbers, color=COLOURS[0], height=0.65)
        axes.bar_label(
            drawn, [f"{number:,.4g}" if abs(number) < 1000 else f"{number:,.0f}" for number in numbers], padding=3
        )
        axes.margins(x=0.12)
        axes.invert_yaxis()
        if is_lopsided:
            axes.set_xscale("log")
        axes.set_xlabel(", ".join(filter(None, (unit, "logarithmic" if is_lopsided else ""))))
        axes.grid(axis="y", visible=False)
    return "".join(svg)


def spans(title: str, spans: Mapping[str, Sequence[tuple[Any, Any]]]) -> str:
    """Plot the periods of each name: bars from start to end on a separate line."""
    with _plot(title, max(1.2, 0.5 + 0.26 * len(spans))) as (axes, svg):
        for place, periods in enumerate(spans.values()):
            axes.hlines([place] * len(periods), *_ends(periods), color=COLOURS[0], linewidth=7)
        axes.set_yticks(range(len(spans)), list(spans))
        axes.invert_yaxis()
        _time_axis(axes, [each for periods in spans.values() for period in periods for each in period])
    return "".join(svg)


@contextmanager
def _plot(title: str, height: float = HEIGHT) -> Iterator[tuple[Axes, list[str]]]:
    """Yield axes to draw on; at the end of the block, the list contains the picture."""
    svg: list[str] = []
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        axes = figure.subplots()
        axes.set_title(title, loc="left", fontsize=10)
        yield axes, svg
        text = io.StringIO()
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    # The XML header before the element is for files.
    svg.append(text.getvalue()[text.getvalue().index("<svg") :])


def _finish(
    axes: Axes,
    series: Mapping[str, tuple[Sequence[Any], Sequence[float]]],
    unit: str,
    shown: tuple[float, float] | None,
) -> None:
    axes.set_ylabel(unit)
    if shown is not None:
        axes.set_ylim(*shown)
    _time_axis(axes, [each for x, _ in series.values() for each in x])
    if len(series) > 1:
        axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)


def _time_axis(axes: Axes, times: Sequence[Any]) -> None:
    """Label an axis of time briefly; times that are all the same are in its middle, not somewhere in ten years."""
    if not times or not _is_time(times):
        return
    locator = AutoDateLocator()  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
    first, last = min(times), max(times)
    if first == last:
        axes.set_xlim(first - MOMENT, last + MOMENT)


def _figure(
    title: str,
    svg: Sequence[str],
    series: Mapping[str, tuple[Sequence[Any], Sequence[float]]],
    bands: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    unit: str,
    shown: tuple[float, float] | None,
    *,
    is_points: bool,
) -> str:
    """Return the picture with its numbers, unless these are very many, and a note about values beyond the axis."""
    note = "" if shown is None else f'<p class="more">{escape(_beyond(series, shown))}</p>'
    count = sum(len(x) * (3 if name in bands else 1) for name, (x, _) in series.items())
    if not count or count > MOST_NUMBERS:
        return "".join(svg) + note
    is_time = _is_time([each for x, _ in series.values() for each in x])
    drawn = zip(COLOURS, series.items(), strict=False)
    plot = {
        "unit": unit,
        "time": is_time,
        "points": is_points,
        "range": shown,
        "series": [_numbers(name, x, y, bands.get(name), colour) for colour, (name, (x, y)) in drawn],
    }
    # JSON in a page: no text of a message ends the element.
    text = json.dumps(plot, ensure_ascii=True, separators=(",", ":")).replace("<", "\\u003c")
    data = f'<script type="application/json">{text}</script>'
    hint = "<figcaption hidden>Drag to zoom, double-click to see all.</figcaption>"
    heading = f'<h3 class="plot">{escape(title)}</h3>'
    return f'<figure class="zoom">{heading}{"".join(svg)}{hint}{data}</figure>{note}'


def _numbers(
    name: str, x: Sequence[Any], y: Sequence[float], band: tuple[Sequence[float], Sequence[float]] | None, colour: str
) -> dict[str, Any]:
    order = numpy.argsort(numpy.asarray(_seconds(x)), kind="stable")
    own: dict[str, Any] = {"label": name, "colour": colour, "x": [_seconds(x)[place] for place in order]}
    own["y"] = [_number(list(y)[place]) for place in order]
    if band is not None:
        own["band"] = [[_number(list(edge)[place]) for place in order] for edge in band]
    return own


def _number(value: float) -> float | None:
    return float(value) if numpy.isfinite(value) else None


def _seconds(x: Sequence[Any]) -> list[float]:
    """Return times as seconds since 1970, numbers as they are."""
    if _is_time(x):
        return [pandas.Timestamp(each).timestamp() for each in x]
    return [float(each) if isinstance(each, int | float | numpy.number) else place for place, each in enumerate(x)]


def _is_time(x: Sequence[Any]) -> bool:
    return len(x) > 0 and hasattr(next(iter(x)), "timestamp")


def _usual_range(values: Sequence[Sequence[float]]) -> tuple[float, float] | None:
    """Return the range of an axis that leaves out values far beyond all others; ``None`` if there are none."""
    every = numpy.concatenate([numpy.asarray(each, dtype=float) for each in values]) if values else numpy.array([])
    every = every[numpy.isfinite(every)]
    if not every.size:
        return None
    low, high = numpy.percentile(every, [1, 99])
    usual = high - low
    above, below = every.max() > high + BEYOND * usual, every.min() < low - BEYOND * usual
    if not usual or not (above or below):
        return None
    top = high + 0.15 * usual if above else every.max() + 0.05 * usual
    bottom = low - 0.15 * usual if below else every.min() - 0.05 * usual
    return float(bottom), float(top)


def _beyond(series: Mapping[str, tuple[Sequence[Any], Sequence[float]]], shown: tuple[float, float]) -> str:
    """Return a note about the values outside the shown range."""
    every = numpy.concatenate([numpy.asarray(y, dtype=float) for _, y in series.values()])
    outside = every[(every < shown[0]) | (every > shown[1])]
    if not outside.size:
        return "The ends of some bands are beyond the axis."
    farthest = outside[numpy.argmax(numpy.abs(outside - numpy.mean(shown)))]
    are = "value is" if outside.size == 1 else "values are"
    return f"{outside.size:,} {are} beyond the axis, the farthest at {farthest:,.6g}."


def _ends(periods: Sequence[tuple[Any, Any]]) -> tuple[list[Any], list[Any]]:
    return [begin for begin, _ in periods], [end for _, end in periods]
