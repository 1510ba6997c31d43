"""Measures the lines and branches of the broker that the seeds of the simulation reach.

``python -m tests.simulation.reached`` prints them. Only the code of functions counts: what a module does while it is
imported is reached by any run.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from coverage import Coverage

#: The parts of the broker that take part in a run, by their folders; the longest prefix of a module's path counts.
PACKAGES: Final = (
    "gateway/access",
    "gateway/definitions",
    "gateway/kernel",
    "gateway/kernel/archives",
    "gateway/kernel/backlog",
    "gateway/kernel/broker",
    "gateway/kernel/features",
    "gateway/kernel/interception",
    "gateway/kernel/journal",
    "gateway/kernel/messages",
    "gateway/kernel/queueing",
    "gateway/kernel/routing",
    "gateway/kernel/sessions",
    "gateway/kernel/settings",
    "gateway/kernel/streams",
    "gateway/kernel/vhosts",
    "gateway/management",
    "gateway/net",
    "gateway/node",
    "gateway/plugins",
    "plugins/gateway_auth",
    "plugins/gateway_exchanges",
    "protocols/gateway_amqp",
    "protocols/gateway_mqtt",
    "protocols/gateway_stomp",
    "storage/gateway_lmdb",
)

#: With this hash seed of Python the order of sets is that of ``gateway simulate``.
_HASH_SEED: Final = "0"

_ROOT: Final = Path(__file__).parents[2]


@dataclass
class Reach:
    """Counts of lines and branches, and of those that were reached."""

    lines: int = 0
    reached_lines: int = 0
    branches: int = 0
    reached_branches: int = 0

    def add(self, summary: dict[str, Any]) -> None:
        """Add the summary of a function, as coverage reports it."""
        self.lines += summary["num_statements"]
        self.reached_lines += summary["covered_lines"]
        self.branches += summary["num_branches"]
        self.reached_branches += summary["covered_branches"]


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the broker, with its summary by coverage."""

    package: str
    module: str
    name: str
    summary: dict[str, Any]

    @property
    def unreached(self) -> int:
        """The lines that were not reached."""
        return int(self.summary["missing_lines"])


def measured(seeds: Iterable[int]) -> dict[str, Any]:
    """Run seeds in this process; return coverage's report."""
    coverage = Coverage(
        branch=True,
        concurrency="greenlet",  # the threads of the store are greenlets
        data_file=None,
        config_file=False,
        source=[str(_ROOT / package) for package in PACKAGES],
    )
    coverage.start()
    try:
        from gateway.simulation.search import search  # imported here to be measured

        for outcome in search(seeds, jobs=1):
            for finding in outcome.findings:
                print(f"seed {outcome.seed}: {finding}", file=sys.stderr)
    finally:
        coverage.stop()
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "report.json"
        coverage.json_report(outfile=str(file))
        report: dict[str, Any] = json.loads(file.read_text())
    return report


def functions_of(report: dict[str, Any]) -> Iterator[Function]:
    """Yield the functions of the parts that take part in a run."""
    for path, module in report["files"].items():
        package = max((each for each in PACKAGES if path.startswith(f"{each}/")), key=len, default=None)
        if package is None:
            continue
        for name, function in module["functions"].items():
            if name:  # the nameless one is the module itself
                yield Function(package, path, name, function["summary"])


def table_of(functions: Iterable[Function]) -> Iterator[str]:
    """Yield the lines of a table with a row for each package."""
    reach_by_package = {package: Reach() for package in PACKAGES}
    total = Reach()
    for function in functions:
        reach_by_package[function.package].add(function.summary)
        total.add(function.summary)
    yield "| Package | Lines | reached | Branches | reached |"
    yield "|---|---:|---:|---:|---:|"
    for package, reach in [*reach_by_package.items(), ("all", total)]:
        name = f"`{package}`" if package != "all" else package
        lines, branches = reach.reached_lines / (reach.lines or 1), reach.reached_branches / (reach.branches or 1)
        yield f"| {name} | {reach.lines} | {lines:.0%} | {reach.branches} | {branches:.0%} |"


def main() -> None:
    """Print the table, and the functions with the most lines that no seed reached."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=300, help="how many seeds to run")
    parser.add_argument("--most", type=int, default=40, help="how many functions and modules to list")
    arguments = parser.parse_args()
    if os.environ.get("PYTHONHASHSEED") != _HASH_SEED:
        command = [sys.executable, "-m", "tests.simulation.reached", *sys.argv[1:]]
        os.execve(sys.executable, command, {**os.environ, "PYTHONHASHSEED": _HASH_SEED})
    os.chdir(_ROOT)
    functions = list(functions_of(measured(range(arguments.seeds))))
    print("\n".join(table_of(functions)))
    print("\nModules with the most lines that no seed reached:")
    unreached: dict[str, int] = {}
    for function in functions:
        unreached[function.module] = unreached.get(function.module, 0) + function.unreached
    for module in sorted(unreached, key=lambda each: -unreached[each])[: arguments.most]:
        print(f"{unreached[module]:5} {module}")
    print("\nFunctions:")
    for each in sorted(functions, key=lambda each: -each.unreached)[: arguments.most]:
        print(f"{each.unreached:5} of {each.summary['num_statements']:3} {each.module} {each.name}")


if __name__ == "__main__":
    main()
