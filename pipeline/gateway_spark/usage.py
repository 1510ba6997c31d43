"""A reader of command lines that ends as all of the gateway's do: one line, exit code 64."""

from argparse import ArgumentParser
from typing import Final, NoReturn

USAGE: Final = 64


class UsageParser(ArgumentParser):
    """Says what is wrong in one line; the long list of what would be right is behind ``--help``."""

    def error(self, message: str) -> NoReturn:
        """End the process."""
        self.exit(USAGE, f"{self.prog}: {message}; see {self.prog} --help\n")
