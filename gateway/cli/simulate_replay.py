"""``gateway simulate --replay``: prints a replay of a recording, and where its answers differ."""

from pathlib import Path
from typing import Final

import click

from gateway.cli.exits import SOFTWARE

#: The exit code of a replay whose answers differ.
_DIFFERENT: Final = 1

READABLE: Final = click.Path(exists=True, dir_okay=False, readable=True, path_type=Path)
"""The type of options that name a file to read."""


def run_replay(recording: Path, definitions: Path | None, seed: int | None, *, has_trace: bool) -> int:
    """Replay a recording; return the exit code."""
    from gateway.simulation.replay.run import replay  # imported here because other commands do not need it

    outcome = replay(recording, definitions, seed, traces=has_trace)
    for line in [*outcome.lines, *outcome.differences, *map(str, outcome.findings)]:
        click.echo(line)
    click.echo(
        f"{outcome.connections} connections, {outcome.answers} answers in {outcome.virtual_s:.1f} virtual seconds, "
        f"{len(outcome.differences)} differences, {len(outcome.findings)} broken promises"
    )
    if outcome.findings:
        return SOFTWARE
    return _DIFFERENT if outcome.differences else 0
