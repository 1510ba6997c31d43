"""``gateway quickstart``: a tour of a running broker, with its own ports."""

import sys
from typing import Final

import click

from gateway.cli.ctl.address import ApiAddress
from gateway.cli.ctl.api import ApiClient
from gateway.cli.ctl.connecting.credentials import ApiCredentials
from gateway.cli.ctl.connecting.target import DEFAULT_PASSWORD, DEFAULT_URL, DEFAULT_USER, ENVIRONMENT
from gateway.cli.ctl.errors import BrokerUnreachable, CommandFailed
from gateway.cli.quickstart.device import DeviceRefused
from gateway.cli.quickstart.tour import VHOST, Tour, TourStep

_TIMEOUT_S: Final = 60.0


@click.command()
@click.option("--url", envvar=ENVIRONMENT["url"], default=DEFAULT_URL, show_default=True, help="The management API.")
@click.option("--username", envvar=ENVIRONMENT["username"], default=DEFAULT_USER, show_default=True, help="A user.")
@click.option("--password", envvar=ENVIRONMENT["password"], default=DEFAULT_PASSWORD, help="The password of the user.")
@click.option("-y", "--yes", "--no-pause", "goes_on", is_flag=True, help="Do not wait for Enter between the steps.")
@click.option("--keep", is_flag=True, help="Keep the virtual host of the tour.")
def quickstart(url: str, username: str, password: str, goes_on: bool, keep: bool) -> int:
    """Show a running broker: publish, consume, a device and a plugin, each with commands to try.

    Everything happens in a virtual host of its own, `quickstart`, which is deleted at the end. The user needs the tag
    administrator.
    """
    pauses = not goes_on and sys.stdin.isatty()
    try:
        api = ApiClient(ApiAddress.parse(url), ApiCredentials.of_password(username, password), _TIMEOUT_S)
        _show(api, Tour(api, username, password), pauses, keep)
    except BrokerUnreachable as error:
        return _failed(f"{error}; `gateway run` starts a broker, --url names its management API", error.exit_code)
    except CommandFailed as error:
        return _failed(str(error), error.exit_code)
    except (DeviceRefused, OSError) as error:
        return _failed(f"the device: {error}", CommandFailed.exit_code)
    return 0


def _show(api: ApiClient, tour: Tour, pauses: bool, keep: bool) -> None:
    """Go through the steps; the virtual host is deleted also if one of them fails."""
    click.echo(f"The broker at {api.address.url} listens on")
    for protocol, port in sorted(tour.listeners.items()):
        click.echo(f"  {protocol:<16} {port}")
    click.echo(f"\nThe steps use the virtual host {VHOST!r}.")
    tour.begin()
    try:
        for number, step in enumerate(tour.steps(), 1):
            _perform(number, step)
            if pauses:
                click.prompt("\nEnter goes on", default="", show_default=False, prompt_suffix=" ...")
    finally:
        if not keep:
            tour.end()
    click.echo(f"\nThe virtual host {VHOST!r} {'is kept' if keep else 'is deleted'}.")
    click.echo(f"The web UI is at {api.address.url}.")
    click.echo("In the source, docs/tutorial.md has six patterns, examples/ has complete programs.")


def _perform(number: int, step: TourStep) -> None:
    click.echo(f"\n{number}. {step.title}\n")
    click.echo(step.shown)
    click.echo(f"\n-> {step.perform()}")


def _failed(reason: str, code: int) -> int:
    click.echo(f"gateway: {reason}", file=sys.stderr)
    return code
