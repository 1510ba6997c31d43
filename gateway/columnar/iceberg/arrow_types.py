"""The Arrow types of Iceberg's types, as the files of the tables have them."""

from typing import Final

import pyarrow as pa
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.schema import Schema
from pyiceberg.types import IcebergType, ListType, MapType, StructType

#: pyiceberg maps text and bytes to the types for more than 2 GiB.
_PLAIN: Final = {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}


def arrow_schema(schema: Schema) -> pa.Schema:
    """Return the columns of a table."""
    return pa.schema([(field.name, arrow_type(field.field_type)) for field in schema.fields])


def arrow_type(kind: IcebergType) -> pa.DataType:
    """Return the Arrow type of values of a type."""
    match kind:
        case StructType():
            return pa.struct([(field.name, arrow_type(field.field_type)) for field in kind.fields])
        case ListType():
            return pa.list_(pa.field("element", arrow_type(kind.element_type)))
        case MapType():
            return pa.map_(arrow_type(kind.key_type), arrow_type(kind.value_type))
        case _:
            found = schema_to_pyarrow(kind)
            return _PLAIN.get(found, found)
