"""Evolution of a table's columns: new ones are added, and numbers are widened. None is removed or narrowed."""

from collections.abc import Iterator
from typing import Final, NamedTuple

import pyarrow as pa
from pyiceberg.io.pyarrow import _pyarrow_to_schema_without_ids
from pyiceberg.table import Table
from pyiceberg.types import IcebergType, ListType, MapType, StructType

from gateway.columnar.iceberg.arrow_types import arrow_type
from gateway.kernel.errors import ConfigurationError

#: The types that a column may be widened to.
_WIDER: Final = {pa.int32(): (pa.int64(),), pa.float32(): (pa.float64(),)}

Path = tuple[str, ...]
"""The names from a column to a part of it, as Iceberg names them."""


class ColumnChange(NamedTuple):
    """One change: a new part, or with ``is_wider`` another type of an existing one."""

    path: Path
    kind: pa.DataType
    is_wider: bool


def evolve(table: Table, schema: pa.Schema, name: str) -> Table:
    """Give a table at least these columns, in one commit.

    :raises ConfigurationError: if a column has a type that it cannot be widened to.
    """
    steps = evolution(table, schema, name)
    if steps:
        with table.update_schema() as update:
            for path, kind, is_wider in steps:
                if is_wider:
                    update.update_column(path, _iceberg(kind))
                else:
                    update.add_column(path, _iceberg(kind))
    return table


def evolution(table: Table, schema: pa.Schema, name: str) -> list[ColumnChange]:
    """Return the changes that a table needs for these columns. :raises ConfigurationError: as ``evolve``."""
    try:
        return list(_of_fields(pa.struct(schema), table.schema().as_struct(), ()))
    except _IncompatibleError as error:
        raise ConfigurationError(
            f"the table {name} cannot take the schema: {error}; give it another name, or keep the type"
        ) from None


class _IncompatibleError(Exception):
    """A type that a column cannot be changed to."""


def _of_fields(declared: pa.DataType, existing: StructType, path: Path) -> Iterator[ColumnChange]:
    known = {field.name: field.field_type for field in existing.fields}
    by_small = {field.name.lower(): field.name for field in existing.fields}
    for field in declared:
        place = (*path, field.name)
        if field.name in known:
            yield from _of_type(field.type, known[field.name], place)
        elif (other := by_small.get(field.name.lower())) is not None:
            raise _IncompatibleError(f"the column {other} differs from {field.name} in capital letters only")
        else:
            yield ColumnChange(place, field.type, is_wider=False)


def _of_type(declared: pa.DataType, existing: IcebergType, path: Path) -> Iterator[ColumnChange]:
    match existing:
        case StructType() if pa.types.is_struct(declared):
            yield from _of_fields(declared, existing, path)
        case ListType() if pa.types.is_list(declared):
            yield from _of_type(declared.value_type, existing.element_type, (*path, "element"))
        case MapType() if pa.types.is_map(declared) and _iceberg(declared.key_type) == existing.key_type:
            yield from _of_type(declared.item_type, existing.value_type, (*path, "value"))
        case _:
            found = _arrow(existing)
            if found is None or not (_is_wider(declared, found) or _is_wider(found, declared)):
                raise _IncompatibleError(f"the column {'.'.join(path)} is {existing} and would be {_shown(declared)}")
            if declared != found and _is_wider(declared, found):
                yield ColumnChange(path, declared, is_wider=True)


def _is_wider(one: pa.DataType, other: pa.DataType) -> bool:
    """Return whether a type holds all values of another, and Iceberg allows the change."""
    if pa.types.is_decimal(one) and pa.types.is_decimal(other):
        return bool(one.scale == other.scale and one.precision >= other.precision)
    return one == other or one in _WIDER.get(other, ())


def fitting(declared: pa.Schema, table: Table) -> pa.Schema:
    """Return columns with the types of a table, which may be wider than declared. The table has been evolved."""
    return pa.schema(list(_fitted(pa.struct(declared), table.schema().as_struct())))


def _fitted(declared: pa.DataType, existing: StructType) -> Iterator[pa.Field]:
    known = {field.name: field.field_type for field in existing.fields}
    for field in declared:
        yield field.with_type(_fitted_type(field.type, known[field.name]))


def _fitted_type(declared: pa.DataType, existing: IcebergType) -> pa.DataType:
    match existing:
        case StructType():
            return pa.struct(list(_fitted(declared, existing)))
        case ListType():
            element = declared.value_field
            return pa.list_(element.with_type(_fitted_type(element.type, existing.element_type)))
        case MapType():
            return pa.map_(declared.key_type, _fitted_type(declared.item_type, existing.value_type))
        case _:
            found = _arrow(existing)
            return declared if found is None or _is_wider(declared, found) else found


def _arrow(kind: IcebergType) -> pa.DataType | None:
    """Return the Arrow type of a primitive type; ``None`` for others."""
    if isinstance(kind, StructType | ListType | MapType):
        return None
    return arrow_type(kind)


def _iceberg(kind: pa.DataType) -> IcebergType:
    [field] = _pyarrow_to_schema_without_ids(pa.schema([("it", kind)])).fields
    return field.field_type


def _shown(kind: pa.DataType) -> str:
    return str(_iceberg(kind))
