"""Formatters of rows: one function for each value of ``--formatter``."""

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from tabulate import tabulate

from gateway.cli.ctl.erlang import cell
from gateway.cli.ctl.values import Json, compact

Row = Mapping[str, Json]
Formatter = Callable[[Sequence[str], Sequence[Row], bool], Iterable[str]]
"""Takes the columns, the rows and whether to print a header; returns lines."""


def table(columns: Sequence[str], rows: Sequence[Row], has_header: bool) -> Iterable[str]:
    """Separate columns by tabs. Without rows nothing is printed, as in rabbitmqctl."""
    if rows and has_header:
        yield "\t".join(columns)
    for row in rows:
        yield "\t".join(cell(row.get(column)) for column in columns)


def pretty_table(columns: Sequence[str], rows: Sequence[Row], has_header: bool) -> Iterable[str]:
    """Draw a table in boxes; lists are shown without brackets, as in rabbitmqctl."""
    if not rows:
        return
    cells = [[_unbracketed(row.get(column)) for column in columns] for row in rows]
    # The header is formatted as a row, because tabulate would widen it. Names may be numeric: do not align numbers.
    lines = [list(columns), *cells] if has_header else cells
    yield tabulate(lines, tablefmt="simple_grid", disable_numparse=True, stralign="left")


def json(columns: Sequence[str], rows: Sequence[Row], has_header: bool) -> Iterable[str]:
    """Write a list of objects, one on each line."""
    yield "["
    for position, row in enumerate(rows):
        comma = "," if position else ""
        yield comma + compact({column: row.get(column) for column in columns})
    yield "]"


def comma_separated(columns: Sequence[str], rows: Sequence[Row], has_header: bool) -> Iterable[str]:
    """Write RFC 4180 with every field in quotes and Unix line ends."""
    if not rows:
        return
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n")
    if has_header:
        writer.writerow(columns)
    writer.writerows([cell(row.get(column)) for column in columns] for row in rows)
    yield text.getvalue().removesuffix("\n")


FORMATTERS: Final[Mapping[str, Formatter]] = {
    "table": table,
    "pretty_table": pretty_table,
    "json": json,
    "csv": comma_separated,
}


def _unbracketed(value: Json) -> str:
    text = cell(value)
    return text[1:-1] if isinstance(value, list | dict) else text
