"""What a verb prints on standard output, and what ``--quiet``, ``--silent`` and ``--formatter`` leave of it."""

from collections.abc import Iterable, Sequence

import click

from gateway.cli.ctl.formatters import FORMATTERS, Row
from gateway.cli.ctl.values import Json, compact


class Output:
    """Prints for people unless a machine reads: ``json`` and ``csv`` hold nothing but their values."""

    def __init__(self, formatter: str, *, is_quiet: bool, is_silent: bool, has_headers: bool) -> None:
        self.formatter = formatter
        self._says_what_it_does = not is_quiet and not is_silent and formatter in ("table", "pretty_table")
        self._says_how_it_went = not is_silent
        # --silent takes the header off plain tables alone.
        self._has_header = has_headers and not (is_silent and formatter == "table")
        self._printed = False

    def announce(self, text: str) -> None:
        """Tell what is about to be done; the first thing that goes in a script."""
        if self._says_what_it_does:
            click.echo(text)

    def conclude(self, text: str) -> None:
        """Tell how it went, when that is worth a word."""
        if self.formatter == "json":
            self.value({"result": "ok", "message": text})
        elif self._says_how_it_went:
            click.echo(text)

    def rows(self, columns: Sequence[str], rows: Iterable[Row]) -> None:
        """Print rows, each value in the column of its name."""
        for line in FORMATTERS[self.formatter](columns, list(rows), self._has_header):
            click.echo(line)
        self._printed = True

    def value(self, value: Json) -> None:
        """Print one JSON value."""
        self.text(compact(value))

    def text(self, text: str) -> None:
        """Print what was asked for, as it is."""
        click.echo(text)
        self._printed = True

    def end(self) -> None:
        """Leave something for a program to read, if the verb had nothing to print."""
        if self.formatter == "json" and not self._printed:
            self.value({"result": "ok"})
