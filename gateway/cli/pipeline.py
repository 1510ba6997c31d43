"""``gateway pipeline``: jobs on the messages of streams and of the archive, which run on Spark.

The broker imports nothing of Spark: the command runs ``python -m gateway_spark`` as a child and ends as it ends.
"""

import signal
import subprocess
import sys
from typing import Final

import click

#: The child says what there is, so its help is the help.
FORWARDING: Final = {"ignore_unknown_options": True, "help_option_names": []}


@click.command(context_settings=FORWARDING, add_help_option=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def pipeline(arguments: tuple[str, ...]) -> int:
    """Run jobs on stored messages: list, run, submit, status, plot."""
    command = [sys.executable, "-m", "gateway_spark", *(arguments or ("--help",))]
    with subprocess.Popen(command) as child:
        # Who stops this process means the job; a terminal interrupts both of them by itself.
        signal.signal(signal.SIGTERM, lambda _number, _frame: child.terminate())
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        return _exit_code(child.wait())


def _exit_code(code: int) -> int:
    """Return the code of a child as a shell has it: 128 and the number of the signal that ended it."""
    return code if code >= 0 else 128 - code
