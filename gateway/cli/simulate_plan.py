"""``gateway simulate --plan`` and ``--save``: plans of runs as files."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from gateway.cli.exits import SOFTWARE

if TYPE_CHECKING:
    from gateway.simulation.plan import RunPlan
    from gateway.simulation.run import RunOutcome
    from gateway.simulation.scene import Scene

WRITABLE: Final = click.Path(dir_okay=False, writable=True, path_type=Path)
"""The type of options that name a file to write."""


def run_plan(path: Path, *, has_trace: bool) -> int:
    """Run a stored plan; return the exit code."""
    from gateway.simulation.run import run_seed  # imported here because other commands do not need it
    from gateway.simulation.stored_plan import StoredPlan

    stored = StoredPlan(path)
    outcome = run_seed(stored.seed, traces=has_trace, plan_for=stored.plan)
    for line in [*outcome.lines, *map(str, outcome.findings)]:
        click.echo(line)
    if not outcome.findings:
        click.echo(f"no broken promise in {outcome.virtual_s:.1f} virtual seconds, {outcome.events} events")
    return SOFTWARE if outcome.findings else 0


def run_and_save(seed: int, only: frozenset[int] | None, path: Path, *, has_trace: bool) -> "RunOutcome":
    """Run a seed, and write what is kept of its plan to a file."""
    from gateway.simulation.plan import RunPlan
    from gateway.simulation.run import run_seed
    from gateway.simulation.stored_plan import write_plan

    def plan_for(scene: "Scene") -> "RunPlan":
        plan = RunPlan.chosen(scene, only)
        write_plan(plan, seed, path)
        return plan

    return run_seed(seed, traces=has_trace, plan_for=plan_for)
