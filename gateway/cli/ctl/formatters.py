"""Formatters of rows: one function for each value of ``--formatter``."""

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from tabulate import tabulate

from gateway.cli.ctl.erlang import cell
from gateway.cli.ctl.values import Json, compact

Row = Mapping[str, Json]
Formatter = Callable[[Sequence[str], Iterable[Row], bool], Iterable[str]]
"""Takes the columns, the rows and whether to print a header; returns lines, as far as possible while rows come."""


def table(columns: Sequence[str], rows: Iterable[Row], has_header: bool) -> Iterable[str]:
    """Separate columns by tabs. Without rows nothing is printed, as in rabbitmqctl."""
    for position, row in enumerate(rows):
        if has_header and not position:
            yield "\t".join(columns)
        yield "\t".join(cell(row.get(column)) for column in columns)


def pretty_table(columns: Sequence[str], rows: Iterable[Row], has_header: bool) -> Iterable[str]:
    """Draw a table in boxes; lists are shown without brackets, as in rabbitmqctl."""
    cells = [[_unbracketed(row.get(column)) for column in columns] for row in rows]
    if not cells:
        return
    # The header is formatted as a row, because tabulate would widen it. Names may be numeric: do not align numbers.
    lines = [list(columns), *cells] if has_header else cells
    yield tabulate(lines, tablefmt="simple_grid", disable_numparse=True, stralign="left")


def json(columns: Sequence[str], rows: Iterable[Row], has_header: bool) -> Iterable[str]:
    """Write a list of objects, one on each line."""
    yield "["
    for position, row in enumerate(rows):
        comma = "," if position else ""
        yield comma + compact({column: row.get(column) for column in columns})
    yield "]"


def comma_separated(columns: Sequence[str], rows: Iterable[Row], has_header: bool) -> Iterable[str]:
    """Write RFC 4180 with every field in quotes and Unix line ends."""
    for position, row in enumerate(rows):
        if has_header and not position:
            yield _quoted(columns)
        yield _quoted([cell(row.get(column)) for column in columns])


FORMATTERS: Final[Mapping[str, Formatter]] = {
    "table": table,
    "pretty_table": pretty_table,
    "json": json,
    "csv": comma_separated,
}


def _quoted(values: Sequence[str]) -> str:
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="").writerow(values)
    return text.getvalue()


def _unbracketed(value: Json) -> str:
    text = cell(value)
    return text[1:-1] if isinstance(value, list | dict) else text
