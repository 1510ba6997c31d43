"""``gateway backup``: copies the data directory while the broker runs."""

from pathlib import Path

import click

DIRECTORY = click.Path(path_type=Path, file_okay=False)


@click.command()
@click.argument("data", type=DIRECTORY)
@click.argument("target", type=DIRECTORY)
def backup(data: Path, target: Path) -> int:
    """Copy the data directory DATA to TARGET, which is created or must be empty. The broker may be running.

    The copy contains everything confirmed before the command started. `gateway run --data TARGET` uses it.
    """
    from gateway_lmdb.backup import back_up  # imported here because other commands do not need the store

    size = back_up(data, target)
    click.echo(f"{size} bytes written to {target}")
    return 0
