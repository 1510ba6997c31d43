"""``gateway``: runs the broker and checks its configuration.

Errors are one line each on the standard error stream and an exit code; there are no tracebacks for errors that an
operator can correct.
"""

import sys
from collections.abc import Mapping, Sequence
from typing import Final

import click

from gateway.cli.backup import backup
from gateway.cli.check import check
from gateway.cli.compact import compact
from gateway.cli.exits import DATA_ERROR, INTERRUPTED, SOFTWARE, UNAVAILABLE, USAGE
from gateway.cli.pipeline import pipeline
from gateway.cli.plugin import plugin
from gateway.cli.repair import repair
from gateway.cli.run import run
from gateway.kernel.errors import ConfigurationError, GatewayError, StorageError
from gateway.version import VERSION

EXIT_CODES: Final[Mapping[type[GatewayError], int]] = {ConfigurationError: DATA_ERROR, StorageError: UNAVAILABLE}


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, prog_name="gateway", message="%(prog)s %(version)s")
def gateway() -> None:
    """Run and maintain a message broker for AMQP 0-9-1, MQTT and STOMP."""


gateway.add_command(run)
gateway.add_command(check)
gateway.add_command(backup)
gateway.add_command(repair)
gateway.add_command(compact)
gateway.add_command(pipeline)
gateway.add_command(plugin)


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
