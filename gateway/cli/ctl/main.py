"""``gatewayctl``: rabbitmqctl's verbs, over the management API.

What goes wrong is one line on the standard error stream and an exit code; there are no tracebacks for what an operator
can mend.
"""

import difflib
import io
import os
import sys
from collections.abc import Sequence
from typing import Final

import click

from gateway.cli.ctl import (
    archives,
    connections,
    definitions,
    delayed,
    exchanges,
    health,
    limits,
    mqtt,
    nodes,
    parameters,
    permissions,
    policies,
    queues,
    status,
    stomp,
    store,
    streams,
    super_streams,
    users,
    vhosts,
)
from gateway.cli.ctl.absent import ABSENT
from gateway.cli.ctl.errors import CommandFailed, WrongUsage
from gateway.cli.ctl.verb import shared_options
from gateway.cli.exits import INTERRUPTED, SOFTWARE, USAGE
from gateway.version import VERSION

NOUNS: Final = (
    users,
    vhosts,
    permissions,
    policies,
    limits,
    parameters,
    queues,
    exchanges,
    connections,
    stomp,
    mqtt,
    delayed,
    streams,
    super_streams,
    archives,
    definitions,
    health,
    status,
    nodes,
    store,
)

ENVIRONMENT: Final = {
    "url": "GATEWAYCTL_URL",
    "login": "GATEWAYCTL_USERNAME",
    "login_password": "GATEWAYCTL_PASSWORD",
    "cacert": "GATEWAYCTL_CACERT",
}
"""Option to the variable that stands in for it."""


class Verbs(click.Group):
    """All verbs. One that is not there is answered with what is nearest to it, or why it is missing."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb. :raises WrongUsage: when there is none of that name."""
        found(args[0])
        return super().resolve_command(ctx, args)


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, "-V", "--version", message="%(version)s")
@click.pass_context
def gatewayctl(context: click.Context, /, **given: object) -> None:
    """Operate a gateway: rabbitmqctl's verbs, over the management API.

    Options may stand before the verb or after it.
    """
    surroundings = {name: os.environ[variable] for name, variable in ENVIRONMENT.items() if os.environ.get(variable)}
    shared = surroundings | {name: value for name, value in given.items() if value}
    context.default_map = dict.fromkeys(gatewayctl.commands, shared)


@gatewayctl.command("help")
@click.argument("verb", required=False)
@click.pass_context
def help_(context: click.Context, verb: str | None) -> None:
    """Tell about a verb, or list them."""
    assert context.parent is not None
    if verb is None:
        click.echo(context.parent.get_help())
    else:
        click.echo(found(verb).get_help(click.Context(found(verb), context.parent, verb)))


gatewayctl.params += shared_options()
for noun in NOUNS:
    for verb in noun.VERBS:
        gatewayctl.add_command(verb)


def found(name: str) -> click.Command:
    """The verb of a name. :raises WrongUsage: when there is none, with the nearest or the reason."""
    if name in gatewayctl.commands:
        return gatewayctl.commands[name]
    if name in ABSENT:
        raise WrongUsage(f"Command '{name}' is not implemented: {ABSENT[name]}")
    near = difflib.get_close_matches(name, gatewayctl.commands, 1)
    raise WrongUsage(f"Command '{name}' not found." + (f" Did you mean '{near[0]}'?" if near else ""))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line, that of the process if none is given, and return the exit code."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # names may hold what the terminal's encoding does not
    try:
        gatewayctl.main(args=arguments, prog_name="gatewayctl", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return USAGE
    except click.UsageError as error:
        return _failed(_told(error), USAGE)
    except CommandFailed as error:
        return _failed(str(error), error.exit_code)
    except click.Abort:
        return INTERRUPTED
    except BrokenPipeError:
        return _unread()
    return 0


def _told(error: click.UsageError) -> str:
    """What is wrong with a command line, and how it should look, on one line."""
    usage = "" if error.ctx is None else " ".join(error.ctx.get_usage().split())
    return " ".join(f"{error.format_message()} {usage}".split())


def _failed(reason: str, exit_code: int) -> int:
    click.echo(f"Error: {reason}", err=True)
    return exit_code


def _unread() -> int:
    """End when nobody reads what is printed, as with ``| head``: without a word, not even from the interpreter."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return SOFTWARE
