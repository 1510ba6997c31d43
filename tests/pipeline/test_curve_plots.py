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
