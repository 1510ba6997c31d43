"""The rows of data files in the current columns of the table, without the detour of a scan.

A scan of pyiceberg returns an empty list for a list that is null.
"""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform

_FIELD_ID = b"PARQUET:field_id"


def table_schema(table: Table) -> pa.Schema:
    """Return the columns of a table as Arrow types with their ids."""
    return schema_to_pyarrow(table.schema(), include_field_ids=True)


def rows_of(table: Table, file: DataFile) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file in the columns of the table.

    A column that the file lacks has the value of the file's partition, or is null.
    """
    schema = table_schema(table)
    constants = _constants(table, file)
    with table.io.new_input(file.file_path).open() as stream:
        parquet = pq.ParquetFile(stream)
        places = _places(parquet.schema_arrow)
        for batch in parquet.iter_batches():
            columns = []
            for field in schema:
                place = places.get(field.metadata[_FIELD_ID].decode(), places.get(field.name))
                if place is None:
                    columns.append(pa.repeat(pa.scalar(constants.get(field.name), field.type), batch.num_rows))
                else:
                    columns.append(batch.column(place).cast(field.type))
            yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _places(schema: pa.Schema) -> dict[str, int]:
    """Return the places of columns in a file, by id, or by name if the file was written without ids."""
    return {
        (field.metadata or {}).get(_FIELD_ID, field.name.encode()).decode(): place for place, field in enumerate(schema)
    }


def _constants(table: Table, file: DataFile) -> dict[str, object]:
    fields = table.specs()[file.spec_id].fields
    return {
        table.schema().find_column_name(field.source_id) or "": file.partition[place]
        for place, field in enumerate(fields)
        if isinstance(field.transform, IdentityTransform)
    }
