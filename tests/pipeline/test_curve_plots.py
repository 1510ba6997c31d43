"""The plots of the benchmark's curves; matplotlib belongs to the pipeline."""

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

from benchmarks.curves.curves import CURVES
from benchmarks.curves.plot import draw
from benchmarks.curves.point import Point

POINTS = [Point(1, 1000.0, 2.0, 50_000_000), Point(1000, 500.0, 4.0, 80_000_000)]


def test_a_plot_has_a_panel_for_each_figure(tmp_path: Path) -> None:
    file = tmp_path / "curve.svg"
    draw(replace(CURVES[0], axis="things"), POINTS, file)
    found = ElementTree.parse(file)
    groups = [each.get("id") for each in found.iter() if (each.get("id") or "").startswith("axes_")]
    assert groups == ["axes_1", "axes_2", "axes_3"]


def test_values_that_differ_by_orders_of_magnitude_are_on_a_logarithmic_axis(tmp_path: Path) -> None:
    at_sizes = [Point(10, 5e6, 0.2, 50_000_000), Point(16 << 20, 24.0, 42_000.0, 80_000_000)]
    powers = []
    for name, points in (("narrow", POINTS), ("wide", at_sizes)):
        draw(CURVES[0], points, tmp_path / f"{name}.svg")
        panels = (tmp_path / f"{name}.svg").read_text().split('id="matplotlib.axis_')
        powers.append([">10<" in panel or "10^" in panel for panel in panels[2::2]])
    assert powers == [[False, False, False], [True, True, False]]
