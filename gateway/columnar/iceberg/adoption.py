"""Taking over an archive of the Parquet layout: its files become data files of the table where they are.

The files of a day are added in one commit, whose property names them. Then a list in their directory does. A crash
between both leaves the property, so no file is added twice; the list lasts when a compaction removes the file.
"""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table, TableProperties

from gateway.columnar.iceberg.catalogue import unretried
from gateway.columnar.iceberg.data_files import data_file, partition_of
from gateway.columnar.iceberg.segment import Segment, filed_identities
from gateway.columnar.iceberg.transaction import KeepingTransaction
from gateway.columnar.iceberg.version_hint import write_hint
from gateway.columnar.tables.adopted import adoption_property, append_names, is_adopted, last_adoption, mark, names_in
from gateway.columnar.tables.iceberg_address import ARCHIVE_TABLE, FILE_SCHEME
from gateway.columnar.tables.manifest import Line, lines
from gateway.columnar.tables.table_directory import days_of_table, exclusively
from gateway.kernel.archives.archive import TRACE
from gateway.kernel.errors import StorageError

#: Table property: the directory and the files of the last commit of an adoption.
ADOPTING: Final = "gateway.adopting"

_SUMMARY: Final = {"gateway.operation": "adopt"}


def adopt(catalogue: Catalog, table: Table, name: str, root: Path) -> Iterator[tuple[Path, int]]:
    """Add the files below the root of a table in the Parquet layout; yield each day with the number of its new files.

    :raises StorageError: if a file does not belong to the table, or another writer commits at the same time.
    """
    root = root.absolute()
    days = days_of_table(root)
    if not days:
        return
    with exclusively(root):
        mark(root, name)
        yield from _adopted(catalogue, table, name, days)


def _adopted(catalogue: Catalog, table: Table, name: str, days: list[Path]) -> Iterator[tuple[Path, int]]:
    for day in days:
        _complete(table, day)
        new = [line for line in _live_lines(day) if line["file"] not in names_in(day)]
        entries = [entry for line in new if (entry := _entry(table, name, day, line)) is not None]
        if entries:
            table = _commit(catalogue, table, day, entries)
            _complete(table, day)
            write_hint(table)
        elif not is_adopted(day):
            append_names(day, [])  # the table has all of its rows
        yield day, len(entries)


def _complete(table: Table, day: Path) -> None:
    """List the files of the last commit, if they are of this day and a crash has left them out."""
    directory, names = last_adoption(table.properties.get(ADOPTING, ""))
    if directory == str(day) and not set(names) <= names_in(day):
        append_names(day, names)


def _live_lines(day: Path) -> list[Line]:
    """Return the lines of the manifest whose files belong to the table in the Parquet layout."""
    listed = {line["file"]: line for line in lines(day)}
    replaced = {name for line in listed.values() for name in line.get("replaces", ())}
    return [line for name, line in sorted(listed.items()) if name not in replaced and (day / name).is_file()]


def _entry(table: Table, name: str, day: Path, line: Line) -> DataFile | None:
    """Return the entry of a file; ``None`` if it is empty, or the table has the same segment from the broker.

    :raises StorageError: if the manifest does not tell whose file it is, or its rows are of several days.
    """
    path = day / line["file"]
    with pq.ParquetFile(path) as file:
        footer = file.metadata
        if not footer.num_rows:
            return None
        vhost = file.read_row_group(0, columns=["vhost"])["vhost"][0].as_py()
    times = _times(footer)
    if len({time.date() for time in times}) > 1:
        raise StorageError(f"{path}: its rows are of several days")
    values = {"vhost": vhost, "timestamp": int(times[0].timestamp() * 1000) * 1000}
    if name == ARCHIVE_TABLE:
        if "kind" not in line or "name" not in line:
            raise StorageError(f"{path}: its line in the manifest does not name its exchange or queue")
        values |= {"source": line["kind"], "source_name": line["name"]}
    if _segment_of(line, vhost).identity in filed_identities(table.properties):
        return None
    return data_file(table, f"{FILE_SCHEME}{path}", path.stat().st_size, footer, partition_of(table, values))


def _times(footer: pq.FileMetaData) -> list[datetime]:
    """Return the times of the first and the last row of each row group."""
    found = []
    for number in range(footer.num_row_groups):
        group = footer.row_group(number)
        [column] = [
            group.column(index)
            for index in range(group.num_columns)
            if group.column(index).path_in_schema == "timestamp"
        ]
        found += [column.statistics.min, column.statistics.max]
    return found


def _segment_of(line: Line, vhost: str) -> Segment:
    """Return the segment of a file, as a broker that has switched the format would file it again."""
    words = line["file"].removesuffix(".parquet").split("-")
    since_ms = int(words[-3]) if len(words) > 3 and words[-3].isdigit() else 0
    return Segment(
        vhost, line.get("kind", TRACE), line.get("name", ""), since_ms, line.get("first", 0), line.get("next", 0)
    )


def _commit(catalogue: Catalog, table: Table, day: Path, entries: list[DataFile]) -> Table:
    """Add files in one commit; return the table as of that commit."""
    names = [entry.file_path.rpartition("/")[2] for entry in entries]
    properties = {ADOPTING: adoption_property(day, names)}
    if table.name_mapping() is None:
        properties[TableProperties.DEFAULT_NAME_MAPPING] = table.schema().name_mapping.model_dump_json()
    for _ in range(20):
        try:
            with KeepingTransaction(unretried(table)) as transaction:
                transaction.set_properties(properties)
                with transaction.update_snapshot(
                    snapshot_properties={"gateway.operation": "adopt"}
                ).merge_append() as append:
                    for entry in entries:
                        append.append_data_file(entry)
        except CommitFailedException:
            table = catalogue.load_table(table.name())
            continue
        return table
    raise StorageError("other writers of the table were faster")
