"""``gateway profile``: where the CPU time of the broker goes that runs on a data directory."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click
from tabulate import tabulate

from gateway.cli.options import configuration_options, settings_from
from gateway.cli.profile.sampler import FORMATS, Sampler, runs_machine_code
from gateway.cli.profile.samples import Samples, read_samples
from gateway.kernel.errors import ConfigurationError
from gateway.node.data_directory import COPY

_MOST_SECONDS: Final = 600
_MOST_PER_SECOND: Final = 1000


@click.command()
@configuration_options
@click.option("--seconds", type=click.IntRange(1, _MOST_SECONDS), default=10, show_default=True, help="How long.")
@click.option(
    "--rate", type=click.IntRange(1, _MOST_PER_SECOND), default=100, show_default=True, help="Samples in a second."
)
@click.option("--top", type=click.IntRange(1), default=20, show_default=True, help="The number of functions to list.")
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False, writable=True),
    help="Write a flame graph (.svg) or a file for speedscope (.json) instead.",
)
def profile(
    config: Path | None,
    data: Path | None,
    overrides: tuple[str, ...],
    seconds: int,
    rate: int,
    top: int,
    output: Path | None,
) -> int:
    """Show where the CPU time of a running broker goes, by part and by function.

    It takes samples from outside with py-spy (the extra `profile`). Each sample stops the broker
    for about a millisecond. Run it on the broker's machine, as root or as the broker's user.
    """
    if output is not None and output.suffix not in FORMATS:
        raise ConfigurationError(f"--output: {output.name} ends neither with .svg nor with .json")
    directory = settings_from(config, data, overrides).data
    from gateway_lmdb.disk import owner_of

    process_id = owner_of(directory) or owner_of(directory / COPY)
    if process_id is None:
        raise ConfigurationError(f"no broker runs on {directory}")
    sampler = Sampler(process_id, rate)
    if output is not None:
        sampler.write(seconds, output)
        click.echo(f"wrote {output}")
    else:
        click.echo("\n".join(_report(process_id, read_samples(sampler.collapsed(seconds)), seconds * rate, top)))
    if runs_machine_code(process_id):
        click.echo("Time in machine code counts for the function that called it.", err=True)
    return 0


def _report(process_id: int, samples: Samples, taken: int, top: int) -> Iterator[str]:
    """Yield the lines of the tables. ``taken`` is the number of samples, most of which found nothing at work."""
    yield f"process {process_id}: at work in {samples.total} of {taken} samples"
    if samples.total:
        yield ""
        yield _table("part", samples.by_part, samples.total, top)
        yield ""
        yield _table("function", samples.by_function, samples.total, top)


def _table(name: str, counts: Counter[str], total: int, top: int) -> str:
    rows = [(f"{100 * count / total:.1f} %", what) for what, count in counts.most_common(top)]
    return tabulate(rows, headers=("share", name), tablefmt="plain", colalign=("right", "left"))
