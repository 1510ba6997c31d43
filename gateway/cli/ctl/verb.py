"""The decorator that makes a verb of a function, and the options of all verbs."""

import functools
from collections.abc import Callable
from typing import Final

import click

from gateway.cli.ctl.api import ApiClient
from gateway.cli.ctl.connecting.target import DEFAULT_URL, target_of
from gateway.cli.ctl.formatters import FORMATTERS
from gateway.cli.ctl.output import Output
from gateway.cli.ctl.progress import Progress
from gateway.cli.ctl.session import VerbSession

DEFAULT_TIMEOUT_S: Final = 60.0
FOREVER_S: Final = 1e6
"""Timeouts from this value on are treated as infinite, because sockets limit their range."""


class Seconds(click.ParamType[float]):
    """A number of seconds, or ``infinity``, as in rabbitmqctl."""

    name = "seconds"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Parse ``60``, ``0.5`` or ``infinity``."""
        try:
            seconds = float(str(value))
        except ValueError:
            seconds = -1.0
        if not seconds > 0:  # also refuses NaN
            self.fail(f"{value!r} is not a number of seconds", param, ctx)
        return seconds


def shared_options() -> list[click.Parameter]:
    """Return the options of every verb: broker, credentials, virtual host, output."""
    return [
        click.Option(["-p", "--vhost"], help="The virtual host. [/]"),
        click.Option(["--formatter"], type=click.Choice(list(FORMATTERS)), help="The output format."),
        click.Option(["-q", "--quiet"], is_flag=True, help="Do not print progress messages."),
        click.Option(["-s", "--silent"], is_flag=True, help="Print only values, without table headers."),
        click.Option(["--no-table-headers"], is_flag=True, help="Do not print table headers."),
        click.Option(["--profile"], help="The broker and login of this profile. [$GATEWAYCTL_PROFILE]"),
        click.Option(["--url"], help=f"The broker's management API. [$GATEWAYCTL_URL, or {DEFAULT_URL}]"),
        click.Option(["--username", "login"], help="Log in as this user. [$GATEWAYCTL_USERNAME, or guest]"),
        click.Option(["--password", "login_password"], help="With this password. [$GATEWAYCTL_PASSWORD, or guest]"),
        click.Option(["--cacert"], help="Trust these certificates, for https. [$GATEWAYCTL_CACERT]"),
        click.Option(["-t", "--timeout"], type=Seconds(), help="Timeout of a request, in seconds. [60]"),
        click.Option(["-n", "--node"], help="Accepted for compatibility: --url selects the broker.", hidden=True),
        click.Option(
            ["-l", "--longnames"], is_flag=True, help="Accepted for compatibility, without effect.", hidden=True
        ),
    ]


def verb(action: Callable[..., None]) -> click.Command:
    """Make a command of a function, with its name; it is called with a session and its own arguments."""

    @functools.wraps(action)
    def run(
        vhost: str | None,
        formatter: str | None,
        quiet: bool,
        silent: bool,
        no_table_headers: bool,
        profile: str | None,
        url: str | None,
        login: str | None,
        login_password: str | None,
        cacert: str | None,
        timeout: float | None,
        node: str | None,
        longnames: bool,
        **arguments: object,
    ) -> None:
        output = Output(formatter or "table", is_quiet=quiet, is_silent=silent, has_headers=not no_table_headers)
        progress = Progress(is_wanted=not quiet and not silent)
        options = {"url": url, "username": login, "password": login_password, "ca": cacert}
        target = target_of(options, profile)
        timeout_s = DEFAULT_TIMEOUT_S if timeout is None else timeout
        limit_s = timeout_s if timeout_s < FOREVER_S else None
        api = ApiClient(target.address, target.credentials, limit_s, target.ca, progress)
        action(VerbSession(api, output, vhost or target.vhost, timeout, progress, options), **arguments)
        output.end()

    command = click.command(action.__name__.rstrip("_"))(run)  # list_ is the verb "list"
    command.params += shared_options()  # listed in the help after the verb's own options
    return command
