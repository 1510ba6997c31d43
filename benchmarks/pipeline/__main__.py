"""Measure the pipeline of one gateway on this machine.

python -m benchmarks.pipeline [--only reads] [--rows 1000000] [--rounds 3] [--cores 0,1] [--output FILE]
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from benchmarks.load.figure import Figure
from benchmarks.load.gateway import launch_managed
from benchmarks.load.tables import Row, met, table
from benchmarks.pipeline.archiving import SETTINGS, measure_archiving
from benchmarks.pipeline.reads import measure_reads
from benchmarks.pipeline.visibility import measure_visibility

Measure = Callable[[argparse.Namespace, Path], Sequence[Figure]]


def main() -> int:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pipeline", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", choices=PARTS, help="measure one part")
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of a stream (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="reads that count, and fills (default: %(default)s)")
    parser.add_argument("--cores", default=",".join(map(str, sorted(os.sched_getaffinity(0)))), help="those of Spark")
    parser.add_argument("--directory", type=Path, help="where the data is, not on a tmpfs")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the table to this file, too")
    options = parser.parse_args()
    figures: list[Figure] = []
    for name, measure in PARTS.items():
        if options.only in (None, name):
            with tempfile.TemporaryDirectory(prefix="gateway-pipeline-", dir=options.directory) as directory:
                figures.extend(measure(options, Path(directory)))
    shown = "\n".join(table([("measured", "", "required", "met"), *map(_row, figures)]))
    print(shown)
    if options.output is not None:
        options.output.write_text(shown + "\n")
    return 0


def _reads(options: argparse.Namespace, directory: Path) -> Sequence[Figure]:
    with launch_managed(directory) as broker:
        return measure_reads(broker, directory, options.rows, options.rounds, _cores(options))


def _visibility(options: argparse.Namespace, directory: Path) -> Sequence[Figure]:
    with launch_managed(directory) as broker:
        return measure_visibility(broker, directory, _cores(options))


def _archiving(options: argparse.Namespace, directory: Path) -> Sequence[Figure]:
    with launch_managed(directory, SETTINGS) as broker:
        return measure_archiving(broker, options.rows, options.rounds)


PARTS: Final[dict[str, Measure]] = {"reads": _reads, "visibility": _visibility, "archiving": _archiving}


def _cores(options: argparse.Namespace) -> Sequence[int]:
    return [int(core) for core in options.cores.split(",")]


def _row(figure: Figure) -> Row:
    return (figure.name, figure.measured, figure.required, met(figure.is_met))


if __name__ == "__main__":
    sys.exit(main())
