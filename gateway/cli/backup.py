"""``gateway backup``: a copy of the data directory, while the broker runs."""

from pathlib import Path

import click

DIRECTORY = click.Path(path_type=Path, file_okay=False)


@click.command()
@click.argument("data", type=DIRECTORY)
@click.argument("target", type=DIRECTORY)
def backup(data: Path, target: Path) -> int:
    """Copy the data directory DATA to TARGET, which is made or empty. The broker may run meanwhile.

    The copy holds everything that was confirmed before the command began. `gateway run --data TARGET` runs on it.
    """
    from gateway_lmdb.backup import back_up  # the other commands do without the store

    size = back_up(data, target)
    click.echo(f"{size} bytes written to {target}")
    return 0
