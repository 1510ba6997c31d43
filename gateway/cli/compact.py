"""``gateway compact``: the free space of a store that no broker has open goes back to the disk."""

from pathlib import Path

import click

from gateway.cli.options import configuration_options, settings_from


@click.command()
@configuration_options
def compact(config: Path | None, data: Path | None, overrides: tuple[str, ...]) -> int:
    """Give the free space of the store's file back to the disk. The broker must not run.

    While it runs, `gatewayctl compact` does the same.
    """
    settings = settings_from(config, data, overrides)
    from gateway_lmdb.repair import compact_file  # the other commands do without the store

    def show(copied: int, of: int) -> None:
        click.echo(f"{copied} of {of} bytes", err=True)

    before, after = compact_file(settings.data, show)
    click.echo(f"{before} bytes became {after}")
    return 0
