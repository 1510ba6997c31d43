"""The lists of ``EnvelopeRows`` as Arrow arrays."""

from array import array
from typing import Any, Final

import pyarrow as pa

from gateway.columnar.encoding.envelope_rows import COLUMNS, EnvelopeRows
from gateway.columnar.encoding.schema import ENVELOPE, MQTT

ENVELOPE_SCHEMA: Final = pa.schema(ENVELOPE)

_FALSE: Final = pa.scalar(False, pa.bool_())
_NO_HEADERS: Final = pa.scalar("{}", pa.string())


def envelope_arrays(rows: EnvelopeRows) -> list[pa.Array]:
    """Return the arrays of all columns, in the order of ``schema.ENVELOPE``."""
    return [column_array(rows, field.name) for field in ENVELOPE_SCHEMA]


def column_array(rows: EnvelopeRows, name: str) -> pa.Array:
    """Return the array of a column of complete rows."""
    kind, values = ENVELOPE_SCHEMA.field(name).type, rows.values[COLUMNS[name]]
    match name:
        case "headers":
            names, texts = pa.array(rows.header_names, pa.string()), pa.array(rows.header_texts, pa.string())
            return pa.MapArray.from_arrays(over(pa.int32(), rows.header_ends), names, texts, type=kind)
        case "headers_json":
            return pa.array(values, pa.string()).fill_null("{}") if values else pa.repeat(_NO_HEADERS, rows.count)
        case "mqtt" if rows.topics:
            members = (rows.topics, rows.qos, rows.retain)
            arrays = [pa.array(each, member.type) for each, member in zip(members, MQTT, strict=True)]
            return pa.StructArray.from_arrays(arrays, fields=list(MQTT), mask=arrays[0].is_null())
    return pa.array(values, kind) if values else absent_array(kind, rows.count)


def absent_array(kind: pa.DataType, count: int) -> pa.Array:
    """Return the array of a column without values; the one column of truth values, ``redelivered``, is false then."""
    return pa.repeat(_FALSE, count) if kind == pa.bool_() else pa.nulls(count, kind)


def over(kind: pa.DataType, numbers: "array[Any] | memoryview") -> pa.Array:
    """Return an array that shares the memory of these numbers."""
    return pa.Array.from_buffers(kind, len(numbers), [None, pa.py_buffer(numbers)])
