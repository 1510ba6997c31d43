"""A report: one HTML page that needs nothing beside it, from tables of results and plots of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, NamedTuple

import jinja2
import pandas
import pyarrow.parquet

#: Rows that a page shows of a table.
SHOWN: Final = 50

#: Rows that are read of a table for its plots.
MOST_ROWS: Final = 500_000


class ResultTables:
    """The tables of a directory of results, as pandas has them."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def __contains__(self, name: str) -> bool:
        return any((self._directory / name).glob("*.parquet"))

    def __getitem__(self, name: str) -> pandas.DataFrame:
        """Return a table, the beginning of it if it is very long."""
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
    """One value as a page shows it."""

    text: str
    is_number: bool


@dataclass(frozen=True, slots=True)
class PageSection:
    """A part of a page: words, plots in SVG, and a table of which the first rows are shown."""

    title: str
    text: str = ""
    plots: Sequence[str] = ()
    table: pandas.DataFrame | None = None

    @property
    def rows(self) -> list[list[Cell]]:
        """The rows that are shown."""
        assert self.table is not None
        return [[_cell(value) for value in row] for row in self.table.head(SHOWN).itertuples(index=False)]

    @property
    def left_out(self) -> int:
        """How many rows are not shown."""
        return 0 if self.table is None else max(0, len(self.table) - SHOWN)


def page(
    title: str,
    summary: str,
    facts: Mapping[str, Any],
    warnings: Sequence[str],
    sections: Sequence[PageSection],
    footer: str,
) -> str:
    """Return a page. All words are escaped, whatever messages had in them; plots are ours."""
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    template = environment.from_string(files(__package__).joinpath("page.html").read_text(encoding="utf-8"))
    return template.render(
        title=title,
        summary=summary,
        facts={name: _cell(value).text for name, value in facts.items()},
        warnings=warnings,
        sections=sections,
        footer=footer,
    )


def _cell(value: Any) -> Cell:
    if value is None or value is pandas.NaT or (isinstance(value, float) and pandas.isna(value)):
        return Cell("", False)
    if isinstance(value, bool) or type(value).__name__ == "bool_":
        return Cell("yes" if value else "no", False)
    if isinstance(value, datetime):
        return Cell(value.strftime("%Y-%m-%d %H:%M:%S"), False)
    if isinstance(value, float):
        return Cell(f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.1f}", True)
    if isinstance(value, int) or type(value).__name__.startswith(("int", "uint")):
        return Cell(f"{int(value):,}", True)
    return Cell(str(value), False)
