"""A report: one self-contained HTML page with tables and plots of results."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.resources import files
from numbers import Real
from pathlib import Path
from typing import Any, Final, NamedTuple

import jinja2
import pandas
import pyarrow.parquet

from gateway_spark.reports.units import heading, writer_of

#: Rows shown of a table.
SHOWN: Final = 200

#: Characters of text that is broken anywhere.
LONG: Final = 40

#: The library that lets readers zoom, and the script that uses it. The broker permits exactly this script in the
#: reports that it serves, by its digest.
SCRIPTS: Final = ("vendor/uPlot.iife.min.js", "zoom.js")
STYLE: Final = "vendor/uPlot.min.css"

#: The class of pictures that it replaces.
ZOOMED: Final = 'class="zoom"'

#: Rows read of a table for its plots.
MOST_ROWS: Final = 500_000


class ResultTables:
    """The tables of a results directory as pandas frames."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def __contains__(self, name: str) -> bool:
        return any((self._directory / name).glob("*.parquet"))

    def __getitem__(self, name: str) -> pandas.DataFrame:
        """Return a table, or the beginning of a very long one."""
        found = sorted((self._directory / name).glob("*.parquet"))
        if not found:
            return pandas.DataFrame()
        pieces, rows = [], 0
        for path in found:
            pieces.append(pyarrow.parquet.read_table(path).to_pandas())
            rows += len(pieces[-1])
            if rows >= MOST_ROWS:
                break
        return pandas.concat(pieces, ignore_index=True).head(MOST_ROWS)


class Cell(NamedTuple):
    """One formatted value of a page."""

    text: str
    is_number: bool

    @property
    def kind(self) -> str:
        """The class of the cell: long text may be broken anywhere."""
        return "number" if self.is_number else "long" if len(self.text) > LONG else ""


@dataclass(frozen=True, slots=True)
class PageSection:
    """A section of a page: text, plots in SVG, and the first rows of a table."""

    title: str
    text: str = ""
    plots: Sequence[str] = ()
    table: pandas.DataFrame | None = None

    @property
    def headings(self) -> list[Cell]:
        """The columns of the table, with whether they have numbers."""
        assert self.table is not None
        return [
            Cell(heading(name), any(cell.is_number for cell in column))
            for name, column in zip(self.table.columns, zip(*self.rows, strict=True), strict=False)
        ] or [Cell(heading(name), False) for name in self.table.columns]

    @property
    def rows(self) -> list[list[Cell]]:
        """The rows that are shown."""
        assert self.table is not None
        writers = [writer_of(name) for name in self.table.columns]
        return [
            [_cell(value, writer) for value, writer in zip(row, writers, strict=True)]
            for row in self.table.head(SHOWN).itertuples(index=False)
        ]

    @property
    def left_out(self) -> int:
        """The number of rows that are not shown."""
        return 0 if self.table is None else max(0, len(self.table) - SHOWN)


def page(
    title: str,
    summary: str,
    facts: Mapping[str, Any],
    warnings: Sequence[str],
    sections: Sequence[PageSection],
    footer: str,
) -> str:
    """Return a page. All text is escaped, because it may come from messages; plots are trusted.

    It is complete without its script, which is there only if there is a plot to zoom.
    """
    is_zoomed = any(ZOOMED in plot for section in sections for plot in section.plots)
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    template = environment.from_string(_resource("page.html"))
    return template.render(
        title=title,
        summary=summary,
        facts={name: _cell(value).text for name, value in facts.items()},
        warnings=warnings,
        sections=sections,
        footer=footer,
        script=script() if is_zoomed else "",
        style=_resource(STYLE) if is_zoomed else "",
    )


def script() -> str:
    """Return the content of the page's only script element that is run."""
    return "\n".join(_resource(name) for name in SCRIPTS)


def _resource(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _cell(value: Any, writer: Callable[[Any], str] | None = None) -> Cell:
    if value is None or value is pandas.NaT or (isinstance(value, float) and pandas.isna(value)):
        return Cell("", False)
    if isinstance(value, bool) or type(value).__name__ == "bool_":
        return Cell("yes" if value else "no", False)
    if isinstance(value, datetime):
        return Cell(value.strftime("%Y-%m-%d %H:%M:%S"), False)
    if writer is not None and isinstance(value, Real):
        return Cell(writer(value), True)
    if isinstance(value, float):
        return Cell(f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.1f}", True)
    if isinstance(value, int) or type(value).__name__.startswith(("int", "uint")):
        return Cell(f"{int(value):,}", True)
    return Cell(str(value), False)
