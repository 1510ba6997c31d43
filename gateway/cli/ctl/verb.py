"""How a function becomes a verb: the options that all verbs share, before the verb or after it."""

import functools
from collections.abc import Callable
from typing import Final

import click

from gateway.cli.ctl.address import ApiAddress
from gateway.cli.ctl.api import ApiClient
from gateway.cli.ctl.formatters import FORMATTERS
from gateway.cli.ctl.output import Output
from gateway.cli.ctl.session import VerbSession

DEFAULT_URL: Final = "http://127.0.0.1:15672"
DEFAULT_USER: Final = "guest"
DEFAULT_PASSWORD: Final = "guest"
DEFAULT_TIMEOUT_S: Final = 60.0
FOREVER_S: Final = 1e6
"""From here on a timeout is none: sockets take no number without bounds."""


class Seconds(click.ParamType[float]):
    """A number of seconds, or ``infinity``, as rabbitmqctl takes them."""

    name = "seconds"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read ``60``, ``0.5`` or ``infinity``."""
        try:
            seconds = float(str(value))
        except ValueError:
            seconds = -1.0
        if not seconds > 0:  # neither is NaN
            self.fail(f"{value!r} is not a number of seconds", param, ctx)
        return seconds


def shared_options() -> list[click.Parameter]:
    """The options of every verb: which broker, as whom, in which virtual host, and how to print."""
    return [
        click.Option(["-p", "--vhost"], help="The virtual host that is meant, / if none is given."),
        click.Option(["--formatter"], type=click.Choice(list(FORMATTERS)), help="How to print what was asked for."),
        click.Option(["-q", "--quiet"], is_flag=True, help="Do not tell what is being done."),
        click.Option(["-s", "--silent"], is_flag=True, help="Print values alone: no table headers either."),
        click.Option(["--no-table-headers"], is_flag=True, help="Leave out the table headers."),
        click.Option(["--url"], help=f"The broker's management API. [$GATEWAYCTL_URL, or {DEFAULT_URL}]"),
        click.Option(["--username", "login"], help="Log in as this user. [$GATEWAYCTL_USERNAME, or guest]"),
        click.Option(["--password", "login_password"], help="With this password. [$GATEWAYCTL_PASSWORD, or guest]"),
        click.Option(["--cacert"], help="Trust these certificates, for https. [$GATEWAYCTL_CACERT]"),
        click.Option(["-t", "--timeout"], type=Seconds(), help="Seconds to wait for an answer. [60]"),
        click.Option(["-n", "--node"], help="Accepted for scripts: --url says which broker is meant.", hidden=True),
        click.Option(["-l", "--longnames"], is_flag=True, help="Accepted for scripts: has no effect.", hidden=True),
    ]


def verb(action: Callable[..., None]) -> click.Command:
    """Make a command of a function, under its own name; it is called with a session and its own arguments."""

    @functools.wraps(action)
    def run(
        vhost: str | None,
        formatter: str | None,
        quiet: bool,
        silent: bool,
        no_table_headers: bool,
        url: str | None,
        login: str | None,
        login_password: str | None,
        cacert: str | None,
        timeout: float | None,
        node: str | None,
        longnames: bool,
        **arguments: object,
    ) -> None:
        address = ApiAddress.parse(url or DEFAULT_URL)
        user = login or address.user or DEFAULT_USER
        password = login_password or address.password or DEFAULT_PASSWORD
        output = Output(formatter or "table", is_quiet=quiet, is_silent=silent, has_headers=not no_table_headers)
        waits_s = DEFAULT_TIMEOUT_S if timeout is None else timeout
        api = ApiClient(address, user, password, waits_s if waits_s < FOREVER_S else None, cacert)
        action(VerbSession(api, output, vhost, timeout), **arguments)
        output.end()

    command = click.command(action.__name__)(run)
    command.params += shared_options()  # after its own, which matter more to who asks for help
    return command
