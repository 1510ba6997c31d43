"""The curves: each point is measured on a broker of its own."""

from pathlib import Path

import pytest

from benchmarks.curves import shapes
from benchmarks.curves.curves import CURVES, Curve

#: A few messages show that a measurement works.
SECONDS = 0.1


@pytest.mark.parametrize("curve", CURVES, ids=[curve.name for curve in CURVES])
def test_a_point_has_a_rate_a_cost_and_the_memory(
    curve: Curve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shapes, "SECONDS", SECONDS)
    size = curve.sizes[1]
    point = curve.measure(tmp_path, size)
    assert point.at == size
    assert min(point.rate, point.cpu_us) > 0
    assert point.resident_bytes > 10_000_000
