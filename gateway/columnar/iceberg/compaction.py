"""Merging of the small data files of a table, one partition and one commit after the other."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import BinaryIO, Final, NamedTuple, cast
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog import Catalog
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table

from gateway.columnar.encoding.parquet import parquet_writer
from gateway.columnar.iceberg.data_files import data_file, remove_data_files
from gateway.columnar.iceberg.file_rows import rows_of, table_schema
from gateway.columnar.iceberg.live_files import LiveFile, live_files
from gateway.columnar.iceberg.replacements import replace_files
from gateway.columnar.iceberg.version_hint import write_hint

_SUMMARY: Final = {"gateway.operation": "compact"}

#: Rows of one row group of a merged file.
_GROUP_ROWS: Final = 131_072

_EARLIEST: Final = datetime.min.replace(tzinfo=UTC)


class Compacted(NamedTuple):
    """The numbers of small files, and of files made of them."""

    merged: int
    made: int


def compact(catalogue: Catalog, table: Table, small_bytes: int, target_bytes: int) -> Iterator[Compacted]:
    """Merge files smaller than ``small_bytes`` to files of about ``target_bytes``; yield after each commit.

    :raises StorageError: if another writer has removed one of the files.
    """
    for group in list(_groups(table, small_bytes, target_bytes)):
        merged = _merged(table, group)
        try:
            table = replace_files(catalogue, table, group, [merged], _SUMMARY)
        except BaseException:
            remove_data_files(table, [merged])
            raise
        write_hint(table)
        yield Compacted(len(group), 1)


def _groups(table: Table, small_bytes: int, target_bytes: int) -> Iterator[list[DataFile]]:
    """Yield the files to merge, oldest first, at least two of one partition."""
    by_partition: dict[str, list[LiveFile]] = defaultdict(list)
    for live in live_files(table):
        file = live.file
        if file.file_size_in_bytes < small_bytes and file.spec_id == table.spec().spec_id:
            by_partition[repr(file.partition)].append(live)
    for files in by_partition.values():
        files.sort(key=lambda live: (live.first_time or _EARLIEST, live.file.file_path))
        yield from (group for group in _filled((live.file for live in files), target_bytes) if len(group) > 1)


def _filled(files: Iterable[DataFile], target_bytes: int) -> Iterator[list[DataFile]]:
    group: list[DataFile] = []
    size = 0
    for file in files:
        if group and size + file.file_size_in_bytes > target_bytes:
            yield group
            group, size = [], 0
        group.append(file)
        size += file.file_size_in_bytes
    yield group


def _merged(table: Table, group: list[DataFile]) -> DataFile:
    """Write the rows of files to a new one, in their order."""
    location = table.location_provider().new_data_location(f"compacted-{uuid4().hex}.parquet")
    schema = table_schema(table)
    footers: list[pq.FileMetaData] = []
    output = table.io.new_output(location)
    with output.create() as file, parquet_writer(cast(BinaryIO, file), schema, footers) as writer:
        waiting: list[pa.RecordBatch] = []
        for batch in (batch for source in group for batch in rows_of(table, source)):
            waiting.append(batch)
            if sum(each.num_rows for each in waiting) >= _GROUP_ROWS:
                writer.write_table(pa.Table.from_batches(waiting, schema))
                waiting = []
        if waiting:
            writer.write_table(pa.Table.from_batches(waiting, schema))
    return data_file(table, location, len(output), footers[0], group[0].partition)
