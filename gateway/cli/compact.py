"""``gateway compact``: returns free space of the store's file to the file system. The broker must not run."""

from pathlib import Path

import click

from gateway.cli.options import configuration_options, settings_from


@click.command()
@configuration_options
def compact(config: Path | None, data: Path | None, overrides: tuple[str, ...]) -> int:
    """Return the free space of the store's file to the file system. The broker must not run.

    To compact a running broker's store, use `gatewayctl compact`.
    """
    settings = settings_from(config, data, overrides)
    from gateway_lmdb.repair import compact_file  # imported here because other commands do not need the store

    def show(copied: int, of: int) -> None:
        click.echo(f"{copied} of {of} bytes", err=True)

    before, after = compact_file(settings.data, show)
    click.echo(f"{before} bytes became {after}")
    return 0
