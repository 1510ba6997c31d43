"""The standard output of verbs, as selected by ``--quiet``, ``--silent`` and ``--formatter``."""

from collections.abc import Iterable, Sequence

import click

from gateway.cli.ctl.formatters import FORMATTERS, Row
from gateway.cli.ctl.values import Json, compact


class Output:
    """Prints messages and results; ``json`` and ``csv`` output contains only results."""

    def __init__(self, formatter: str, *, is_quiet: bool, is_silent: bool, has_headers: bool) -> None:
        self.formatter = formatter
        self._has_announcements = not is_quiet and not is_silent and formatter in ("table", "pretty_table")
        self._has_conclusions = not is_silent
        # --silent removes the header of plain tables only.
        self._has_header = has_headers and not (is_silent and formatter == "table")
        self._printed = False

    def announce(self, text: str) -> None:
        """Print what the verb is about to do, unless quiet."""
        if self._has_announcements:
            click.echo(text)

    def conclude(self, text: str) -> None:
        """Print the outcome, unless silent."""
        if self.formatter == "json":
            self.value({"result": "ok", "message": text})
        elif self._has_conclusions:
            click.echo(text)

    def rows(self, columns: Sequence[str], rows: Iterable[Row]) -> None:
        """Print rows, each value in the column of its name."""
        for line in FORMATTERS[self.formatter](columns, list(rows), self._has_header):
            click.echo(line)
        self._printed = True

    def stream(self, columns: Sequence[str], rows: Iterable[Row]) -> None:
        """Print rows as they come, except in a ``pretty_table``."""
        for line in FORMATTERS[self.formatter](columns, rows, self._has_header):
            click.echo(line)
        self._printed = True

    def value(self, value: Json) -> None:
        """Print one JSON value."""
        self.text(compact(value))

    def text(self, text: str) -> None:
        """Print a result unchanged."""
        click.echo(text)
        self._printed = True

    def end(self) -> None:
        """Print a JSON result if the verb has printed none."""
        if self.formatter == "json" and not self._printed:
            self.value({"result": "ok"})
