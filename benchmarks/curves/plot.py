"""The plot of one curve as SVG: messages a second, CPU of a message, and memory, over the size."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.curves.curves import Curve
from benchmarks.curves.point import Point

#: Values that span more than this factor are on a logarithmic axis.
_WIDE: Final = 1000

#: The panels: the label of each axis, and its value.
_PANELS: Final = (
    ("messages a second", lambda point: point.rate),
    ("µs of CPU a message", lambda point: point.cpu_us),
    ("MB resident", lambda point: point.resident_bytes / 1e6),
)


def draw(curve: Curve, points: Sequence[Point], file: Path) -> None:
    """Write the plot. It needs matplotlib, of the extra ``spark``."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = curve.name  # the same points give the same file
    matplotlib.rcParams["svg.fonttype"] = "none"  # text as text, in a fifth of the size
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, len(_PANELS), figsize=(11, 2.8), layout="constrained")
    for axes, (label, value) in zip(panels, _PANELS, strict=True):
        _panel(axes, [point.at for point in points], [value(point) for point in points], label)
        axes.set_xlabel(curve.axis)
    figure.savefig(file, metadata={"Date": None})
    pyplot.close(figure)


def _panel(axes: Any, sizes: Sequence[int], values: Sequence[float], label: str) -> None:  # Any: untyped in places
    axes.plot(sizes, values, marker="o", color="#1f6f8b")
    axes.set_xscale("log")
    axes.set_ylabel(label)
    if max(values) > _WIDE * min(values):
        axes.set_yscale("log")
    else:
        axes.set_ylim(0, 1.08 * max(values))
    axes.grid(visible=True, alpha=0.3)
