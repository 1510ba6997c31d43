"""Measure how far one gateway goes, and draw the curves.

    python -m benchmarks.curves [--only queues] [--most 10000] [--output docs/plots]

Writes ``NAME.svg`` for each curve and ``curves.md`` with all points. ``--most`` leaves out larger sizes, except for
messages and backlogs.
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.curves.curves import CURVES, Curve
from benchmarks.curves.plot import draw
from benchmarks.curves.point import Point
from benchmarks.load.processes import raise_descriptor_limit
from benchmarks.load.tables import mb, table

#: More open files than the largest number of connections needs.
_DESCRIPTORS: Final = 1 << 17

#: Open files of a process besides the connections.
_OTHER_FILES: Final = 1000


def main() -> int:
    """Measure the curves, print them, and write them to ``--output``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.curves", description=__doc__)
    parser.add_argument("--only", choices=[curve.name for curve in CURVES], help="measure one curve")
    parser.add_argument("--most", type=int, default=100_000, help="the largest number of connections, queues, ...")
    parser.add_argument("--output", type=Path, help="a directory for the plots and the table")
    options = parser.parse_args()
    descriptors = raise_descriptor_limit(_DESCRIPTORS) - _OTHER_FILES
    sections = []
    for curve in CURVES:
        if options.only in (None, curve.name):
            most = {
                "size": 16 << 20,
                "backlog": 1_000_000,
                "connections": min(options.most, descriptors - _OTHER_FILES),
            }
            points = [_measured(curve, at) for at in curve.sizes if at <= most.get(curve.name, options.most)]
            sections.append(_section(curve, points))
            if options.output is not None:
                options.output.mkdir(parents=True, exist_ok=True)
                draw(curve, points, options.output / f"{curve.name}.svg")
    if options.output is not None:
        (options.output / "curves.md").write_text("\n".join(sections))
    return 0


def _measured(curve: Curve, at: int) -> Point:
    with tempfile.TemporaryDirectory(prefix="gateway-curve-") as directory:
        point = curve.measure(Path(directory), at)
    print(f"{curve.name} {at:,}: {point.rate:,.0f}/s, {point.cpu_us:.2f} µs, {mb(point.resident_bytes)} MB", flush=True)
    return point


def _section(curve: Curve, points: Sequence[Point]) -> str:
    head = (curve.axis, "messages a second", "µs of CPU a message", "MB resident")
    rows = [(f"{each.at:,}", f"{each.rate:,.0f}", f"{each.cpu_us:.2f}", mb(each.resident_bytes)) for each in points]
    return "\n".join((f"{curve.messages}:", "", *table([head, *rows]), ""))


if __name__ == "__main__":
    sys.exit(main())
