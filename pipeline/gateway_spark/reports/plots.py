"""Plots in SVG, for embedding in a page."""

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

WIDTH: Final = 9.6
HEIGHT: Final = 3.2

#: Most devices in a plot with lines.
MOST_SERIES: Final = 6

COLOURS: Final = ("#2f6fb4", "#d9822b", "#3d9a6a", "#b4435c", "#7c5cbf", "#5a6b7b")

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
    with _plot(title) as (axes, svg):
        for colour, (name, (x, y)) in zip(COLOURS, series.items(), strict=False):
            axes.plot(x, y, color=colour, linewidth=1.1, label=name)
            if bands is not None and name in bands:
                axes.fill_between(x, *bands[name], color=colour, alpha=0.15, linewidth=0)
        axes.set_ylabel(unit)
        _legend(axes, len(series))
    return "".join(svg)


def bars(title: str, values: Mapping[str, float], unit: str = "") -> str:
    """Plot a bar for each name, the first on top."""
    with _plot(title, max(1.2, 0.5 + 0.26 * len(values))) as (axes, svg):
        axes.barh(list(values), list(values.values()), color=COLOURS[0], height=0.65)
        axes.invert_yaxis()
        axes.set_xlabel(unit)
        axes.grid(axis="y", visible=False)
    return "".join(svg)


def spans(title: str, spans: Mapping[str, Sequence[tuple[Any, Any]]]) -> str:
    """Plot the periods of each name: bars from start to end on a separate line."""
    with _plot(title, max(1.2, 0.5 + 0.26 * len(spans))) as (axes, svg):
        for place, periods in enumerate(spans.values()):
            axes.hlines([place] * len(periods), *_ends(periods), color=COLOURS[0], linewidth=7)
        axes.set_yticks(range(len(spans)), list(spans))
        axes.invert_yaxis()
    return "".join(svg)


def points(title: str, groups: Mapping[str, tuple[Sequence[Any], Sequence[float]]], unit: str = "") -> str:
    """Plot points in the colour of their group, later groups on top."""
    with _plot(title) as (axes, svg):
        for colour, (name, (x, y)) in zip(COLOURS, groups.items(), strict=False):
            axes.scatter(x, y, s=6, color=colour, label=name, linewidths=0)
        axes.set_ylabel(unit)
        _legend(axes, len(groups))
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


def _legend(axes: Axes, count: int) -> None:
    if count > 1:
        axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)


def _ends(periods: Sequence[tuple[Any, Any]]) -> tuple[list[Any], list[Any]]:
    return [begin for begin, _ in periods], [end for _, end in periods]
