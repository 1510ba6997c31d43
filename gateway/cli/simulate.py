"""``gateway simulate``: runs the broker in a virtual world, once for each seed."""

import os
import sys
import time
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from gateway.cli.exits import SOFTWARE
from gateway.cli.simulate_plan import WRITABLE, run_and_save, run_plan
from gateway.cli.simulate_replay import READABLE, run_replay
from gateway.kernel.errors import ConfigurationError

if TYPE_CHECKING:
    from gateway.simulation.run import RunOutcome

#: What the simulation needs besides the broker.
_PACKAGES: Final = ("pamqp", "greenlet")

#: With this hash seed of Python, the order of sets of texts is the same in each run.
_HASH_SEED: Final = "0"

#: Seconds between two reports of progress.
_REPORT_S: Final = 5.0

#: Failing seeds that are printed before the search ends.
_MOST_FAILURES: Final = 10


@click.command()
@click.option("--seed", type=click.IntRange(min=0), help="Run this seed alone.")
@click.option("--seeds", type=click.IntRange(min=1), default=1000, show_default=True, help="How many seeds to run.")
@click.option("--from", "first", type=click.IntRange(min=0), default=0, show_default=True, help="The first seed.")
@click.option("--jobs", type=click.IntRange(min=1), default=2, show_default=True, help="How many processes to use.")
@click.option("--trace", is_flag=True, help="With --seed: print the run as a dialogue.")
@click.option("--only", default="", metavar="ITEMS", help="With --seed: keep these items of its plan, such as 0,3.")
@click.option("--shrink", is_flag=True, help="With --seed: find the fewest items with which it still fails.")
@click.option("--save", type=WRITABLE, metavar="FILE", help="With --seed: write its plan, or what is kept of it.")
@click.option("--plan", type=READABLE, metavar="FILE", help="Run a plan that --save has written.")
@click.option("--replay", type=READABLE, metavar="FILE", help="Replay a recording of connections.")
@click.option("--definitions", type=READABLE, metavar="FILE", help="With --replay: the broker's definitions.")
def simulate(
    seed: int | None,
    seeds: int,
    first: int,
    jobs: int,
    trace: bool,
    only: str,
    shrink: bool,
    save: Path | None,
    plan: Path | None,
    replay: Path | None,
    definitions: Path | None,
) -> int:
    """Search for broken promises on a virtual clock, network and disk.

    Each seed decides the clients of all protocols, their requests, and what befalls them and the broker: cut bytes,
    slow readers, kills, power cuts, full disks. The broker runs in this process, unchanged. A seed that fails replays
    exactly: run it with --trace. The exit code is 70 if one fails.

    With --replay, the connections of a recording are served again, and answers that differ are printed; with --seed the
    network cuts and delays their bytes. The exit code is 1 if answers differ.
    """
    _require_packages()
    if definitions is not None and replay is None:
        raise click.UsageError("--definitions needs --replay")
    if (replay or plan) is not None and (only or shrink or save):
        raise click.UsageError("--only, --shrink and --save are for seeds, not for --replay and --plan")
    if plan is not None and (seed is not None or replay is not None):
        raise click.UsageError("--plan has a seed of its own, and is no recording: leave --seed and --replay out")
    if seed is None and (replay or plan) is None and (trace or only or shrink or save):
        raise click.UsageError("--trace, --only, --shrink and --save need --seed")
    if os.environ.get("PYTHONHASHSEED") != _HASH_SEED:
        sys.stdout.flush()
        os.execve(
            sys.executable,
            [sys.executable, "-m", "gateway", *sys.argv[1:]],
            {**os.environ, "PYTHONHASHSEED": _HASH_SEED},
        )
    if replay is not None:
        return run_replay(replay, definitions, seed, has_trace=trace)
    if plan is not None:
        return run_plan(plan, has_trace=trace)
    if seed is not None:
        return _run_one(seed, _items(only), trace, shrink, save)
    return _search(range(first, first + seeds), jobs)


def _run_one(seed: int, only: frozenset[int] | None, trace: bool, shrink: bool, save: Path | None) -> int:
    from gateway.simulation.run import run_seed  # imported here because other commands do not need it
    from gateway.simulation.shrinking import shrunk

    if shrink:
        only = shrunk(seed, lambda left: click.echo(f"{left} items are left", err=True))
    outcome = run_seed(seed, only, traces=trace) if save is None else run_and_save(seed, only, save, has_trace=trace)
    for line in outcome.lines:
        click.echo(line)
    kept = "" if only is None else f" --only {','.join(map(str, sorted(only)))}"
    _print_failure(outcome, kept)
    if not outcome.findings:
        click.echo(
            f"seed {seed}: no broken promise in {outcome.virtual_s:.1f} virtual seconds, {outcome.events} events"
        )
    return SOFTWARE if outcome.findings else 0


def _search(seeds: Iterable[int], jobs: int) -> int:
    from gateway.simulation.search import search

    began_s = reported_s = time.monotonic()
    done = failures = events = 0
    for outcome in search(seeds, jobs):
        done += 1
        events += outcome.events
        if outcome.findings:
            failures += 1
            _print_failure(outcome, "")
            if failures >= _MOST_FAILURES:
                break
        if time.monotonic() - reported_s > _REPORT_S:
            reported_s = time.monotonic()
            click.echo(f"{done} seeds, {failures} failed", err=True)
    minutes = (time.monotonic() - began_s) / 60
    click.echo(f"{done} seeds, {failures} failed, {done / minutes:.0f} a minute, {events} events")
    return SOFTWARE if failures else 0


def _print_failure(outcome: "RunOutcome", kept: str) -> None:
    for finding in outcome.findings:
        click.echo(f"seed {outcome.seed}: {finding}")
    if outcome.findings:
        click.echo(f"replay it: gateway simulate --seed {outcome.seed}{kept} --trace")


def _items(only: str) -> frozenset[int] | None:
    """Return the numbers of items. :raises click.UsageError: if one is no number."""
    try:
        return frozenset(map(int, only.split(","))) if only else None
    except ValueError:
        raise click.UsageError(f"--only: '{only}' is not a list of numbers such as 0,3") from None


def _require_packages() -> None:
    missing = [name for name in _PACKAGES if find_spec(name) is None]
    if missing:
        raise ConfigurationError(
            f"the simulation needs {' and '.join(missing)}: pip install 'gateway-broker[simulation]'"
        )
