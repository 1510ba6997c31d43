"""``gatewayctl``: rabbitmqctl's verbs, over the management API.

Errors are one line each on the standard error stream and an exit code; there are no tracebacks for errors that an
operator can correct.
"""

import difflib
import io
import os
import sys
from collections.abc import Sequence
from typing import Final

import click

from gateway.cli.ctl import shell_completion
from gateway.cli.ctl.errors import CommandFailed, WrongUsage
from gateway.cli.ctl.examples import EXAMPLES
from gateway.cli.ctl.unsupported import UNSUPPORTED
from gateway.cli.ctl.verb import shared_options
from gateway.cli.ctl.verbs import (
    access_answers,
    archives,
    audit,
    bridges,
    connections,
    definitions,
    delayed,
    exchanges,
    explain,
    health,
    kept,
    limits,
    message_traces,
    migration,
    mqtt,
    nodes,
    observing,
    parameters,
    permissions,
    pipeline_batches,
    pipeline_runs,
    plugins,
    policies,
    profiles,
    queues,
    sql,
    status,
    stomp,
    store,
    streams,
    super_streams,
    users,
    vhosts,
    workbench,
)
from gateway.cli.ctl.verbs.node import (
    cluster,
    diagnosis,
    leadership,
    logs,
    maintenance,
    rabbitmq_plugins,
    recording,
    settings,
    stopping,
    tls,
)
from gateway.cli.ctl.verbs.plugin_verbs import shorthand
from gateway.cli.example_help import add_examples
from gateway.cli.exits import INTERRUPTED, SOFTWARE, USAGE
from gateway.version import VERSION

VERB_MODULES: Final = (
    users,
    vhosts,
    permissions,
    policies,
    limits,
    parameters,
    queues,
    exchanges,
    explain,
    connections,
    stomp,
    message_traces,
    mqtt,
    delayed,
    kept,
    streams,
    super_streams,
    archives,
    pipeline_batches,
    pipeline_runs,
    sql,
    audit,
    workbench,
    definitions,
    migration,
    health,
    status,
    access_answers,
    nodes,
    store,
    plugins,
    bridges,
    settings,
    logs,
    maintenance,
    recording,
    stopping,
    tls,
    cluster,
    leadership,
    diagnosis,
    rabbitmq_plugins,
    observing,
    profiles,
    shell_completion,
)


class Verbs(click.Group):
    """All verbs. For an unknown one, the error names the nearest verb or the reason why it is unsupported."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb; an unknown one may be a plugin that adds verbs. :raises WrongUsage: if it is unsupported."""
        try:
            find_command(args[0])
        except WrongUsage as unknown:
            if args[0] in UNSUPPORTED:
                raise
            return args[0], shorthand(args[0], unknown), args[1:]
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the verbs by section, as rabbitmqctl does."""
        for module in VERB_MODULES:
            limit = formatter.width - 6 - min(30, max(len(verb.name or "") for verb in module.VERBS))
            title = (module.__doc__ or "").partition("\n")[0].rstrip(".").partition(":")[0]
            rows = [(verb.name or "", verb.get_short_help_str(limit)) for verb in module.VERBS]
            with formatter.section(title):
                formatter.write_dl(rows)


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(VERSION, "-V", "--version", message="%(version)s")
@click.pass_context
def gatewayctl(context: click.Context, /, **given: object) -> None:
    """Operate a running gateway over its HTTP API, from anywhere.

    The verbs are those of rabbitmqctl, rabbitmq-diagnostics, rabbitmq-plugins, rabbitmq-queues, rabbitmq-streams and
    rabbitmq-upgrade, and some of its own. Options may be given before or after the verb. `gatewayctl help VERB` shows
    an example of each verb.
    """
    shared = {name: value for name, value in given.items() if value}
    context.default_map = {
        name: dict.fromkeys(command.commands, shared) if isinstance(command, click.Group) else shared
        for name, command in gatewayctl.commands.items()
    }
    context.default_map.setdefault(str(context.invoked_subcommand), shared)


@gatewayctl.command("help")
@click.argument("verb", required=False)
@click.pass_context
def help_(context: click.Context, verb: str | None) -> None:
    """Show the help of a verb, or list all verbs."""
    assert context.parent is not None
    if verb is None:
        click.echo(context.parent.get_help())
    else:
        click.echo(find_command(verb).get_help(click.Context(find_command(verb), context.parent, verb)))


gatewayctl.params += shared_options()
for module in VERB_MODULES:
    for verb in module.VERBS:
        gatewayctl.add_command(verb)
add_examples(gatewayctl, "gatewayctl", EXAMPLES)


def find_command(name: str) -> click.Command:
    """Return a verb. :raises WrongUsage: if it does not exist, with the nearest verb or the reason."""
    if name in gatewayctl.commands:
        return gatewayctl.commands[name]
    if name in UNSUPPORTED:
        raise WrongUsage(f"Command '{name}' is not implemented: {UNSUPPORTED[name]}")
    near = difflib.get_close_matches(name.replace("-", "_"), gatewayctl.commands, 1)
    raise WrongUsage(f"Command '{name}' not found." + (f" Did you mean '{near[0]}'?" if near else ""))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line, by default that of the process, and return the exit code."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # the terminal's encoding may lack characters of names
    try:
        gatewayctl.main(args=arguments, prog_name="gatewayctl", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return USAGE
    except click.UsageError as error:
        return _report_failure(_error_text(error), USAGE)
    except CommandFailed as error:
        return _report_failure(str(error), error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except BrokenPipeError:
        return _exit_on_broken_pipe()
    return 0


def _error_text(error: click.UsageError) -> str:
    """Return an error of a command line and the correct usage on one line."""
    usage = "" if error.ctx is None else " ".join(error.ctx.get_usage().split())
    return " ".join(f"{error.format_message()} {usage}".split())


def _report_failure(reason: str, exit_code: int) -> int:
    click.echo(f"Error: {reason}", err=True)
    return exit_code


def _exit_on_broken_pipe() -> int:
    """Exit silently when the reader closes the pipe, as with ``| head``; redirect the interpreter's final flush."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return SOFTWARE
