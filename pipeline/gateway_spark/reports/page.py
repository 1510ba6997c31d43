"""A report: one self-contained HTML page with tables and plots of results."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, NamedTuple

import jinja2
import pandas
import pyarrow.parquet

#: Rows shown of a table.
SHOWN: Final = 50

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


@dataclass(frozen=True, slots=True)
class PageSection:
    """A section of a page: text, plots in SVG, and the first rows of a table."""

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
    """Return a page. All text is escaped, because it may come from messages; plots are trusted."""
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
