"""Run the simulation on each mutated broker: how many seeds does it take to notice the mistake?

``python -m tests.simulation.mutations`` prints a table in Markdown. With the number of a mutation, this process is the
mutated one.
"""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from tests.simulation.mutations.importing import install
from tests.simulation.mutations.table import MUTATIONS

#: The most seeds that are tried, and the processes at a time.
MOST_SEEDS: Final = 400
JOBS: Final = 2

_MISSED: Final = 1


def run_mutated(number: int, most: int) -> int:
    """Run seeds on the mutated broker until one fails; print how many it took and the broken promise."""
    install(MUTATIONS[number])
    from gateway.simulation.search import run_bounded

    for seed in range(most):
        findings = run_bounded(seed).findings
        if findings:
            print(seed + 1, findings[0].rule, sep="\t")
            return 0
    print(most, "not noticed", sep="\t")
    return _MISSED


def outcome_of(number: int, most: int = MOST_SEEDS) -> tuple[bool, str, str]:
    """Run a mutation in a process of its own: was it noticed, after how many seeds, by which promise?"""
    command = [sys.executable, "-m", "tests.simulation.mutations", str(number), str(most)]
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    ended = subprocess.run(command, capture_output=True, text=True, env=environment, stdin=subprocess.DEVNULL)
    seeds, _, rule = (ended.stdout.strip().splitlines() or ["?\tcrashed: " + ended.stderr[-200:]])[-1].partition("\t")
    return ended.returncode == 0, seeds, rule


def main() -> int:
    """Print the table of all mutations; return 1 if one was missed."""
    print("| Mistake | Module | Seeds | Broken promise |\n|---|---|---|---|")
    missed = 0
    with ThreadPoolExecutor(JOBS) as threads:
        outcomes = threads.map(outcome_of, range(len(MUTATIONS)))
        for mutation, (is_noticed, seeds, rule) in zip(MUTATIONS, outcomes, strict=True):
            missed += not is_noticed
            print(f"| {mutation.name} | `{mutation.module}` | {seeds} | {rule} |", flush=True)
    return _MISSED if missed else 0


if __name__ == "__main__":
    arguments = [int(word) for word in sys.argv[1:]]
    sys.exit(run_mutated(*arguments) if arguments else main())
