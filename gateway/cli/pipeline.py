"""``gateway pipeline``: jobs on Spark that process messages of streams and of the archive.

The broker does not import Spark: the command runs ``python -m gateway_spark`` as a child and returns its exit code.
"""

import signal
import subprocess
import sys
from typing import Final

import click

#: Options, including ``--help``, are handled by the child.
FORWARDING: Final = {"ignore_unknown_options": True, "help_option_names": []}


@click.command(context_settings=FORWARDING, add_help_option=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def pipeline(arguments: tuple[str, ...]) -> int:
    """Run jobs on stored messages: list, run, submit, status, plot."""
    command = [sys.executable, "-m", "gateway_spark", *(arguments or ("--help",))]
    with subprocess.Popen(command) as child:
        # A signal to this process is meant for the job; a terminal sends SIGINT to both processes itself.
        signal.signal(signal.SIGTERM, lambda _number, _frame: child.terminate())
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        return _exit_code(child.wait())


def _exit_code(code: int) -> int:
    """Return a child's exit code in the shell's form: 128 plus the signal number if a signal ended it."""
    return code if code >= 0 else 128 - code
