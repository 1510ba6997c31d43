"""The files of an archive in the Parquet layout, from the manifests of its directories."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa

from gateway.columnar.encoding.schema import MESSAGES
from gateway.columnar.encoding.schema import TRACE as EVENTS
from gateway.columnar.reading.listed_file import TRACE, FiledSource, ListedFile, Period, SourceTable
from gateway.columnar.tables.iceberg_address import ARCHIVE_TABLE, TRACE_TABLE
from gateway.columnar.tables.manifest import Line, lines
from gateway.columnar.tables.table_directory import shortened


class ParquetFiles:
    """The files below a directory. A URI is a path."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def sources(self, vhost: str) -> Iterator[SourceTable]:
        """Yield the sources that have files, perhaps several times."""
        for day in self._days(ARCHIVE_TABLE, vhost):
            for line in _valid(day):
                if isinstance(line.get("kind"), str) and isinstance(line.get("name"), str):
                    yield SourceTable(FiledSource(vhost, line["kind"], line["name"]), ARCHIVE_TABLE)
        if next(self._days(TRACE_TABLE, vhost), None) is not None:
            yield SourceTable(FiledSource(vhost, TRACE, ""), TRACE_TABLE)

    def columns(self, source: FiledSource, table: str) -> pa.Schema | None:
        """Return the columns of the one table that a source has in this layout."""
        if table != _table_of(source):
            return None
        return EVENTS if source.kind == TRACE else MESSAGES

    def files(self, source: FiledSource, period: Period, table: str) -> Iterator[ListedFile]:
        """Yield the files whose line in a manifest names the source, in the order of their paths.

        A file that is gone is left out: an operator removed it, or an Iceberg table that had adopted it has merged it.
        """
        if table not in ("", _table_of(source)):
            return
        for day in self._days(_table_of(source), source.vhost):
            if not period.may_have(*_times_of(day)):
                continue
            for line in sorted(_valid(day), key=lambda each: str(each["file"])):
                is_wanted = source.kind == TRACE or (line.get("kind"), line.get("name")) == (source.kind, source.name)
                if not is_wanted or not period.may_have(line.get("first_ms"), line.get("last_ms")):
                    continue
                if (day / line["file"]).is_file():
                    yield _listed(day, line)

    def part(self, file: str, position: int, size: int) -> bytes:
        """Return bytes of a file. :raises FileNotFoundError: if it was removed."""
        with open(file, "rb") as opened:
            opened.seek(position)
            return opened.read(size)

    def _days(self, table: str, vhost: str) -> Iterator[Path]:
        """Yield the directories of a virtual host's days, the earliest first."""
        yield from sorted((self._directory / table / f"vhost={shortened(vhost)}").glob("date=*"))


def _table_of(source: FiledSource) -> str:
    return TRACE_TABLE if source.kind == TRACE else ARCHIVE_TABLE


def _valid(directory: Path) -> list[Line]:
    """Return the lines of the files that are part of the table."""
    found = list(lines(directory))
    replaced = {name for line in found for name in line.get("replaces") or ()}
    latest = {line["file"]: line for line in found}
    return [line for name, line in latest.items() if name not in replaced and Path(name).name == name]


def _listed(directory: Path, line: Line) -> ListedFile:
    numbers = [line.get(key) for key in ("rows", "first", "next", "first_ms", "last_ms")]
    return ListedFile(str(directory / line["file"]), line["bytes"], *numbers)


def _times_of(directory: Path) -> tuple[int | None, int | None]:
    """Return the first and the last millisecond of a directory's day; ``None`` if its name is no date."""
    try:
        day = datetime.fromisoformat(directory.name.removeprefix("date=")).replace(tzinfo=UTC)
    except ValueError:
        return None, None
    return int(day.timestamp() * 1000), int((day + timedelta(days=1)).timestamp() * 1000) - 1
