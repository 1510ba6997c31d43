"""Requests for the files of an archive, and the files in the answers."""

from dataclasses import dataclass
from typing import Final

TRACE: Final = "trace"
"""The kind of the trace's source."""


@dataclass(frozen=True, slots=True, order=True)
class FiledSource:
    """An archive: of an ``exchange``, a ``queue`` or the ``trace`` (``kind``) of this name in a virtual host."""

    vhost: str
    kind: str
    name: str


@dataclass(frozen=True, slots=True, order=True)
class SourceTable:
    """An archive, and one of the tables that have its rows."""

    source: FiledSource
    table: str


@dataclass(frozen=True, slots=True)
class Period:
    """The times of wanted rows in milliseconds, from ``since_ms`` up to, not including, ``until_ms``."""

    since_ms: int
    until_ms: int

    def may_have(self, first_ms: int | None, last_ms: int | None) -> bool:
        """Return whether rows between two times may be wanted; unknown times may."""
        return (last_ms is None or last_ms >= self.since_ms) and (first_ms is None or first_ms < self.until_ms)


@dataclass(frozen=True, slots=True)
class ListedFile:
    """A Parquet file: its URI, size, and as far as known its rows, offsets (``next`` exclusive) and times."""

    file: str
    bytes: int
    rows: int | None = None
    first: int | None = None
    next: int | None = None
    first_ms: int | None = None
    last_ms: int | None = None
