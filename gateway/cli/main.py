"""``gateway``: runs the broker and checks its configuration.

Errors are one line each on the standard error stream and an exit code; there are no tracebacks for errors that an
operator can correct.
"""

import sys
from collections.abc import Mapping, Sequence
from typing import Final

import click

from gateway.cli.archive import archive
from gateway.cli.backup import backup
from gateway.cli.check import check
from gateway.cli.compact import compact
from gateway.cli.completion import SHELLS, completion_script
from gateway.cli.example_help import add_examples
from gateway.cli.exits import DATA_ERROR, INTERRUPTED, SOFTWARE, UNAVAILABLE, USAGE
from gateway.cli.migrate.command import migrate
from gateway.cli.pipeline import pipeline
from gateway.cli.plugin import plugin
from gateway.cli.profile.command import profile
from gateway.cli.quickstart.command import quickstart
from gateway.cli.repair import repair
from gateway.cli.run import run
from gateway.cli.simulate import simulate
from gateway.code_form import code_form
from gateway.kernel.errors import ConfigurationError, GatewayError, StorageError
from gateway.version import VERSION

#: An example of each command.
EXAMPLES: Final = {
    "run": "run --config gateway.toml --data /var/lib/gateway",
    "quickstart": "quickstart --yes",
    "check": "check --config gateway.toml",
    "backup": "backup /var/lib/gateway /backup/monday",
    "compact": "compact --data /var/lib/gateway",
    "profile": "profile --data /var/lib/gateway --seconds 10",
    "archive status": "archive --config gateway.toml status",
    "archive adopt": "archive --config gateway.toml adopt",
    "archive infer": "archive --config gateway.toml infer --queue orders",
    "archive compact": "archive --config gateway.toml compact --small 32 --target 256",
    "archive expire": "archive --config gateway.toml expire --rows 90d --snapshots 7d",
    "archive tidy": "archive --config gateway.toml tidy --grace 1d",
    "archive register": "archive --config gateway.toml register archive",
    "repair list": "repair --data /var/lib/gateway list",
    "repair check": "repair --data /var/lib/gateway check",
    "repair export": "repair --data /var/lib/gateway export > records.jsonl",
    "repair drop": "repair --data /var/lib/gateway drop 1 2",
    "repair retry": "repair --data /var/lib/gateway retry --all",
    "pipeline": "pipeline list",
    "plugin new": "plugin new enrich --kind interceptor",
    "migrate": "migrate /etc/rabbitmq/rabbitmq.conf --output gateway.toml",
    "simulate": "simulate --seed 17 --trace",
    "completion": "completion bash",
}

EXIT_CODES: Final[Mapping[type[GatewayError], int]] = {ConfigurationError: DATA_ERROR, StorageError: UNAVAILABLE}


def print_version(context: click.Context, _: click.Parameter, is_asked: bool) -> None:
    """Print the version, and whether the hot modules are machine code; end the program."""
    if is_asked:
        click.echo(f"gateway {VERSION} ({code_form()})")
        context.exit()


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=print_version,
    help="Show the version, and whether it runs as machine code or source, and exit.",
)
def gateway() -> None:
    """Run and maintain the gateway, a message broker for RabbitMQ's clients.

    It serves AMQP 0-9-1, MQTT 3.1, 3.1.1 and 5, and STOMP 1.0 to 1.2, each with TLS and MQTT and STOMP over WebSocket
    too, on the same queues, streams and exchanges, and RabbitMQ's HTTP API. Everything durable is in one LMDB file.

    These commands start the broker, and check and maintain its files on this machine. `gatewayctl` operates a running
    broker, from anywhere: users, queues, policies, plugins, settings, health checks.
    """


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print a script that completes commands and options in bash, zsh or fish."""
    click.echo(completion_script(gateway, "gateway", shell))


gateway.add_command(run)
gateway.add_command(quickstart)
gateway.add_command(check)
gateway.add_command(backup)
gateway.add_command(repair)
gateway.add_command(compact)
gateway.add_command(profile)
gateway.add_command(archive)
gateway.add_command(pipeline)
gateway.add_command(plugin)
gateway.add_command(migrate)
gateway.add_command(simulate)
gateway.add_command(completion)
add_examples(gateway, "gateway", EXAMPLES)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line, by default that of the process, and return the exit code."""
    try:
        code = gateway.main(args=arguments, prog_name="gateway", standalone_mode=False)
    except click.UsageError as error:
        error.show()
        return USAGE
    except click.Abort:
        return INTERRUPTED
    except GatewayError as error:
        return _failed(error)
    return code if isinstance(code, int) else 0


def _failed(error: GatewayError) -> int:
    """Print an error, which may have several lines, and return the exit code for its kind."""
    for line in str(error).split("\n"):
        click.echo(f"gateway: {line}", file=sys.stderr)
    codes = [code for kind, code in EXIT_CODES.items() if isinstance(error, kind)]
    return codes[0] if codes else SOFTWARE
