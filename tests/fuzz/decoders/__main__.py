"""Coverage-guided fuzzing of every decoder: ``make fuzz-decoders ARGS="--only mqtt --seconds 600"``.

``--seconds`` is the time of the whole run, shared by the targets; ``--only`` takes the beginning of a target's name.
"""

import argparse
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from tests.fuzz.decoders.catalogue import MODULE_OF, TARGETS, chosen
from tests.fuzz.decoders.findings import reproduction
from tests.fuzz.decoders.inventory import ROOT
from tests.fuzz.decoders.trial import run_measured

#: New inputs and findings; git ignores it.
WORK: Final = ROOT / ".fuzz"

_MISSING: Final = (
    "atheris is not installed: .venv/bin/pip install atheris. It has wheels for Python 3.11 to 3.13 on Linux; on other "
    "systems it is built with clang. Without it, tests/fuzz/decoders/test_targets.py runs thousands of mutations."
)

_RUNS: Final = re.compile(r"stat::number_of_executed_units: +(\d+)")
_COVERAGE: Final = re.compile(r"cov: (\d+) ft: (\d+)")

#: Time beyond that of libFuzzer after which a process is ended: imports, instrumentation, the last run.
_PATIENCE_S: Final = 900


@dataclass(frozen=True, slots=True)
class Result:
    """The numbers of one target: runs, covered edges and features, findings."""

    target: str
    runs: int
    edges: int
    features: int
    findings: int
    seconds: float

    def __str__(self) -> str:
        rate = self.runs / self.seconds if self.seconds else 0
        return (
            f"{self.target:28} {self.runs:>10,} runs {rate:>7,.0f}/s {self.edges:>6} edges {self.features:>7} features"
            f" {self.findings:>3} findings"
        )


def main(words: Sequence[str] | None = None) -> int:
    """Fuzz the chosen targets one after the other; return 0 if nothing was found."""
    options = _options(words)
    targets = [target.name for target in chosen(options.only)]
    if not targets:
        print(f"no target begins with {' or '.join(options.only)}; they are {', '.join(TARGETS)}", file=sys.stderr)
        return 2
    if options.replay:
        return _replayed(targets, options.replay)
    if find_spec("atheris") is None:
        print(_MISSING, file=sys.stderr)
        return 2
    seconds = max(1, int(options.seconds / len(targets)))
    results = []
    for name in targets:
        results.append(_fuzzed(name, options.work, seconds, options.runs))
        print(results[-1], flush=True)
    runs, findings = sum(each.runs for each in results), sum(each.findings for each in results)
    print(f"{runs:,} runs of {len(results)} targets, {findings} findings" + (f" in {options.work}" if findings else ""))
    return int(findings > 0)


def _fuzzed(name: str, work: Path, seconds: int, runs: int) -> Result:
    """Fuzz one target in a process of its own."""
    work.mkdir(parents=True, exist_ok=True)
    before = _artifacts(work, name)
    begin = time.monotonic()
    command = [sys.executable, "-m", "tests.fuzz.decoders.session", MODULE_OF[name], name]
    command += [str(work), str(seconds), str(runs)]
    try:
        ended = subprocess.run(
            command, check=False, capture_output=True, text=True, errors="replace", timeout=seconds + _PATIENCE_S
        )
        code, out, report = ended.returncode, ended.stdout, ended.stderr
    except subprocess.TimeoutExpired:
        code, out, report = -1, "", "the process did not end"
    print(out, end="", flush=True)
    found = sorted(_artifacts(work, name) - before)
    for file in found:
        if file.suffix != ".txt" and not file.with_suffix(".txt").exists():  # what ended the process
            print(f"FOUND {file.name}\n      {reproduction(file, name)}", flush=True)
    count = sum(file.suffix != ".txt" for file in found)
    if code and not count:
        print(f"{name} ended with {code}:\n{report[-2000:]}", flush=True)
        count = 1
    executed, covered = _RUNS.search(report), _COVERAGE.findall(report)
    edges, features = covered[-1] if covered else (0, 0)
    took_s = time.monotonic() - begin
    return Result(name, int(executed[1]) if executed else 0, int(edges), int(features), count, took_s)


def _artifacts(work: Path, name: str) -> set[Path]:
    return set((work / "findings").glob(f"{name}-*"))


def _replayed(targets: list[str], file: Path) -> int:
    """Run the targets on the input in a file; an exception is printed with its traceback."""
    for name in targets:
        TARGETS[name].run(file.read_bytes())  # imports of the first run do not count
        run_measured(TARGETS[name], file.read_bytes())
        print(f"{name} obeys its laws")
    return 0


def _options(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("make fuzz-decoders", description=__doc__)
    parser.add_argument("--seconds", type=float, default=3600.0, help="time of the whole run, shared by the targets")
    parser.add_argument("--runs", type=int, default=0, help="most runs of each target; 0 for no limit")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="targets whose names begin so")
    parser.add_argument("--work", type=Path, default=WORK, help="folder of new inputs and findings")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="run the targets once, on this input")
    return parser.parse_args(words)


if __name__ == "__main__":
    sys.exit(main())
