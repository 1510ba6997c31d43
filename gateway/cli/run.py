"""``gateway run``: the broker in the foreground, until SIGTERM or SIGINT."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from gateway.cli.exits import UNAVAILABLE
from gateway.cli.options import configuration_options, settings_from

if TYPE_CHECKING:
    from twisted.internet.error import CannotListenError


@click.command()
@configuration_options
def run(config: Path | None, data: Path | None, overrides: tuple[str, ...]) -> int:
    """Run the broker until it is told to stop."""
    settings = settings_from(config, data, overrides)
    # The broker installs a reactor and loads every plugin; the other commands do without.
    from twisted.internet.error import CannotListenError

    from gateway.app import run as run_broker

    try:
        return run_broker(settings)
    except CannotListenError as error:
        click.echo(f"gateway: cannot listen on {error.interface or '*'}:{error.port}: {reason(error)}", err=True)
        return UNAVAILABLE


def reason(error: "CannotListenError") -> str:
    """Say why a port cannot be had: ``Address already in use``."""
    return error.socketError.strerror or str(error.socketError)
