"""A command-line parser whose errors have the gateway's form: one line, exit code 64."""

from argparse import ArgumentParser
from typing import Final, NoReturn

USAGE: Final = 64


class UsageParser(ArgumentParser):
    """Prints the error in one line; ``--help`` lists the options."""

    def error(self, message: str) -> NoReturn:
        """End the process."""
        self.exit(USAGE, f"{self.prog}: {message}; see {self.prog} --help\n")
