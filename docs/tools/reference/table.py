"""Tables of Markdown."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

NOTE: Final = "This page is generated from the code by `make docs`."


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table. A cell is one line; a ``|`` in it is escaped."""
    yield _row(head)
    yield "|" + "---|" * len(head)
    for row in rows:
        yield _row(row)


def code(text: str) -> str:
    """Return the text as code, or nothing for no text."""
    return f"`{text}`" if text else ""


def from_docstring(text: str) -> str:
    """Return the first sentence of a docstring, with its names as code of Markdown."""
    return text.strip().partition("\n\n")[0].replace("\n", " ").replace("``", "`")


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"
