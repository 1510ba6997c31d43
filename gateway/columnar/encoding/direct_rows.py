"""Rows of AMQP messages as columns, read from the bytes of chunks without an object for each message.

``_rows.c`` reads what is valid and usual, a batch at a time. Anything else in a batch makes it decline the batch, which
``rows_between`` then reads; the same happens without a compiler. Both ways have equal columns and the same errors.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa

from gateway.columnar.encoding.direct_headers import AmqpHeaders
from gateway.columnar.encoding.envelope_arrays import ENVELOPE_SCHEMA, absent_array, column_array, over
from gateway.columnar.encoding.envelope_columns import text
from gateway.columnar.encoding.envelope_reader import UNREADABLE
from gateway.columnar.encoding.envelope_rows import EnvelopeRows
from gateway.columnar.encoding.rows import MOST_BYTES, MOST_ROWS, Rows, rows_between
from gateway.kernel.errors import StorageError
from gateway.kernel.messages.chunks import chunk_heads
from gateway.kernel.messages.contents import decode_content
from gateway_amqp.properties import PROPERTIES

if TYPE_CHECKING:
    from gateway.columnar.encoding._rows import Column, Dictionary, Found

try:
    from gateway.columnar.encoding import _rows as native
except ImportError:  # run from source
    native = None  # type: ignore[assignment]

_PROPERTIES: Final = tuple(each.name for each in PROPERTIES)
_TIMESTAMP: Final = "timestamp"
_MESSAGE_TIMESTAMP: Final = "message_timestamp"
_HEADERS: Final = ("headers", "headers_json", "x_death")
_NAMES: Final = ("exchange", "routing_key", "protocol")

#: The bytes of a content before the size of its header, and that size if there is none.
_NAMES_HEAD: Final = 6
_NO_HEADER: Final = bytes(4)


class DirectRows:
    """Consecutive rows of one day. ``timestamps`` are in µs since the epoch; ``columns`` are those of the envelopes."""

    __slots__ = ("bodies", "columns", "count", "first", "offsets", "timestamps")

    def __init__(self, found: "Found", columns: list[pa.Array]) -> None:
        _, self.first, self.count, offsets, times, bodies, *_ = found
        self.offsets = memoryview(offsets).cast("q")
        self.timestamps = memoryview(times).cast("q")
        self.bodies = _array(pa.binary(), self.count, bodies)
        self.columns = columns

    def __len__(self) -> int:
        return self.count


Batch: TypeAlias = DirectRows | Rows


class DirectReader:
    """Reads batches of rows. Caches the columns of tables of headers."""

    def __init__(self) -> None:
        self._headers = AmqpHeaders()

    def batches(self, data: bytes, first: int, end: int) -> Iterator[Batch]:
        """Yield the rows from ``first`` to before ``end`` in the chunks of a stream, in the same batches as Python.

        :raises StorageError: as ``rows_between`` does.
        """
        if native is None or not _is_consecutive(data):
            yield from rows_between([data], first, end)
            return
        start = 0  # of the chunk with the first row, or of one before
        while True:
            found = native.read_rows(data, start, first, end, MOST_ROWS, MOST_BYTES)
            rows: Batch | None = None
            position = start
            if found is not None:
                if len(found) == 0:
                    return
                position = found[0]
                rows = self._direct(found)
            if rows is None:
                rows = next(rows_between([data], first, end, start), None)
            if rows is None:
                return
            yield rows
            start, first = position, rows.first + len(rows)

    def _direct(self, found: "Found") -> DirectRows | None:
        """Return the rows of columns, ``None`` if a name or a table in them cannot be decoded."""
        _, _, count, _, _, _, names, tables, properties = found
        try:
            columns = _name_arrays(names, count) | self._header_arrays(tables, count)
        except UNREADABLE:
            return None
        columns |= {
            _MESSAGE_TIMESTAMP if name == _TIMESTAMP else name: column
            for name, column in zip(_PROPERTIES, properties, strict=True)
            if column is not None
        }
        return DirectRows(
            found, [_envelope_array(field.type, count, columns.get(field.name)) for field in ENVELOPE_SCHEMA]
        )

    def _header_arrays(self, tables: "Dictionary", count: int) -> dict[str, pa.Array]:
        encoded, codes = tables
        rows = EnvelopeRows()
        if encoded == [b""]:
            rows.end_rows(count)
            return {name: column_array(rows, name) for name in _HEADERS}
        for table in encoded:
            if table:
                rows.put_headers(self._headers.columns(table))
            rows.end_row()
        rows.complete()
        arrays = [column_array(rows, name) for name in _HEADERS]
        return dict(zip(_HEADERS, _taken(arrays, codes), strict=True))


def _is_consecutive(data: bytes) -> bool:
    """Return whether the chunks are complete, and each begins with the offset after the one before."""
    try:
        return all(one.end == other.first for one, other in pairwise(chunk_heads(data)))
    except StorageError:
        return False


def _name_arrays(names: "Dictionary", count: int) -> dict[str, pa.Array]:
    encoded, codes = names
    contents = [decode_content(each[:_NAMES_HEAD] + _NO_HEADER + each[_NAMES_HEAD:]) for each in encoded]
    values: list[list[str]] = [
        [text(each.exchange) for each in contents],
        [text(each.routing_key) for each in contents],
        [each.header_format for each in contents],
    ]
    if len(contents) == 1:
        arrays = [pa.repeat(pa.scalar(each[0], pa.string()), count) for each in values]
    else:
        arrays = _taken([pa.array(each, pa.string()) for each in values], codes)
    return dict(zip(_NAMES, arrays, strict=True))


def _taken(arrays: Sequence[pa.Array], codes: bytes) -> list[pa.Array]:
    indices = over(pa.int32(), memoryview(codes).cast("i"))
    return [array.take(indices) for array in arrays]


def _envelope_array(kind: pa.DataType, count: int, column: Any) -> pa.Array:
    if isinstance(column, tuple):
        return _array(kind, count, column)
    return absent_array(kind, count) if column is None else column


def _array(kind: pa.DataType, count: int, column: "Column") -> pa.Array:
    valid, values, texts = column
    buffers = [None if valid is None else pa.py_buffer(valid), pa.py_buffer(values)]
    if texts is not None:
        buffers.append(pa.py_buffer(texts))
    return pa.Array.from_buffers(kind, count, buffers)
