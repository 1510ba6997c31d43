"""Writing of columns as data files of an Iceberg table, one for each day."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, BinaryIO, Final, cast
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.io.pyarrow import (
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
)
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.table import Table
from pyiceberg.transforms import BucketTransform, HourTransform, IdentityTransform, TruncateTransform
from pyiceberg.typedef import Record
from pyiceberg.types import IcebergType, ListType, MapType, NestedField, StructType

from gateway.columnar.encoding.parquet import days_of, parquet_writer, write_pieces
from gateway.columnar.encoding.pieces import Piece
from gateway.kernel.errors import StorageError

#: Metadata key by which a Parquet file keeps the id of a column.
_FIELD_ID: Final = b"PARQUET:field_id"

Values = Mapping[str, Any]
"""The columns that have one value in all rows of a file, in the form of Iceberg: a time in microseconds."""


def write_data_files(table: Table, pieces: Iterable[Piece], stem: str, constants: Mapping[str, str]) -> list[DataFile]:
    """Write the files of a segment, which no snapshot has yet. ``stem`` begins their names.

    The columns in ``constants`` are added to those of the pieces that lack them.
    """
    return [_written(table, part, stem, constants) for part in days_of(pieces)]


def remove_data_files(table: Table, files: Iterable[DataFile]) -> None:
    """Remove files that no commit has added; one that cannot be removed is left to ``gateway archive tidy``."""
    for file in files:
        with suppress(OSError):
            table.io.delete(file.file_path)


def _written(table: Table, part: list[Piece], stem: str, constants: Mapping[str, str]) -> DataFile:
    added = {name: value for name, value in constants.items() if name not in part[0].batch.schema.names}
    batches = [_with_constants(piece.batch, added) for piece in part]
    schema = with_field_ids(batches[0].schema, table)
    pieces = [
        piece._replace(batch=pa.RecordBatch.from_arrays(batch.columns, schema=schema))
        for piece, batch in zip(part, batches, strict=True)
    ]
    location = table.location_provider().new_data_location(f"{stem}-{uuid4().hex}.parquet")
    footers: list[pq.FileMetaData] = []
    output = table.io.new_output(location)
    with output.create() as file, parquet_writer(cast(BinaryIO, file), schema, footers) as writer:
        write_pieces(writer, schema, pieces)
    partition = {**constants, "timestamp": part[0].first_ms * 1000}
    return data_file(table, location, len(output), footers[0], partition_of(table, partition))


def _with_constants(batch: pa.RecordBatch, constants: Mapping[str, str]) -> pa.RecordBatch:
    for name, value in constants.items():
        batch = batch.append_column(name, pa.repeat(pa.scalar(value, pa.string()), batch.num_rows))
    return batch


def data_file(table: Table, location: str, size: int, footer: pq.FileMetaData, partition: Record) -> DataFile:
    """Return the entry of a Parquet file for a manifest."""
    schema = table.schema()
    statistics = data_file_statistics_from_parquet_metadata(
        parquet_metadata=footer,
        stats_columns=compute_statistics_plan(schema, table.properties),
        parquet_column_mapping=parquet_path_to_id_mapping(schema),
    )
    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=location,
        file_format=FileFormat.PARQUET,
        partition=partition,
        file_size_in_bytes=size,
        sort_order_id=None,
        spec_id=table.spec().spec_id,
        equality_ids=None,
        key_metadata=None,
        **statistics.to_serialized_dict(),
    )


def partition_of(table: Table, values: Values) -> Record:
    """Return the partition of rows that have these values in common, and a day.

    :raises StorageError: if the operator has changed the partitions so that a file may belong to several.
    """
    found = []
    for field in table.spec().fields:
        column = table.schema().find_field(field.source_id)
        is_constant = column.name in values and not (column.name == "timestamp" and _divides_a_day(field.transform))
        if not is_constant:
            raise StorageError(f"the table's partition field {field.name} has several values in one file")
        found.append(field.transform.transform(column.field_type)(values[column.name]))
    return Record(*found)


def _divides_a_day(transform: object) -> bool:
    return isinstance(transform, HourTransform | BucketTransform | IdentityTransform | TruncateTransform)


def with_field_ids(schema: pa.Schema, table: Table) -> pa.Schema:
    """Return an Arrow schema with the ids that the columns have in the table."""
    return pa.schema(_all_identified(schema, table.schema().fields))


def _all_identified(fields: Iterable[pa.Field], columns: Iterable[NestedField]) -> list[pa.Field]:
    known = {column.name: column for column in columns}
    return [_identified(field, known[field.name].field_id, known[field.name].field_type) for field in fields]


def _identified(field: pa.Field, number: int, kind: IcebergType) -> pa.Field:
    return pa.field(field.name, _typed(field.type, kind), field.nullable, {_FIELD_ID: str(number).encode()})


def _typed(arrow: pa.DataType, kind: IcebergType) -> pa.DataType:
    match kind:
        case StructType():
            return pa.struct(_all_identified(arrow, kind.fields))
        case ListType():
            return pa.list_(_identified(arrow.value_field, kind.element_id, kind.element_type))
        case MapType():
            key = _identified(arrow.key_field, kind.key_id, kind.key_type)
            return pa.map_(key, _identified(arrow.item_field, kind.value_id, kind.value_type))
        case _:
            return arrow
