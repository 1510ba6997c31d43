"""Conversion of a trace stream to event columns: each message holds the events of one turn, as JSON."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from gateway.columnar.encoding.envelope_columns import text
from gateway.columnar.encoding.pieces import DAY_MS, Piece
from gateway.columnar.encoding.rows import MOST_ROWS
from gateway.columnar.encoding.schema import TRACE
from gateway.kernel.errors import StorageError
from gateway.kernel.messages.chunks import entries
from gateway.kernel.messages.contents import body_at
from gateway.kernel.messages.message import Value

_TIME = TRACE.get_field_index("timestamp")

#: The values of an event: all columns but the virtual host.
_WIDTH = len(TRACE) - 1


class TraceColumns:
    """Converts the events of any virtual host to columns."""

    schema = TRACE

    def pieces(self, chunks: Iterable[bytes], first: int, end: int, *, vhost: str) -> Iterator[Piece]:
        """Yield the events in the stream's messages from ``first`` to before ``end``.

        :raises StorageError: if a chunk or a message is damaged, or a newer gateway wrote it.
        """
        name, events = text(vhost), _Gathered(first, 0)
        for data in chunks:
            for offset, timestamp_ms, _, content in entries(data, first):
                if offset >= end:
                    break
                if len(events.rows) >= MOST_ROWS or timestamp_ms // DAY_MS != events.first_ms // DAY_MS:
                    if events.rows:
                        yield events.piece(name)
                    events = _Gathered(offset, timestamp_ms)
                events.take(offset, timestamp_ms, _rows(content))
        if events.rows:
            yield events.piece(name)


def _rows(content: bytes) -> list[list[Value]]:
    """Return the events in a message, one row of values for each. :raises StorageError: if they are damaged."""
    try:
        rows = json.loads(content[body_at(content) :])
    except (ValueError, RecursionError) as error:
        raise StorageError(f"a message of a trace is not JSON: {error}") from None
    if not isinstance(rows, list) or not all(isinstance(row, list) and len(row) == _WIDTH for row in rows):
        raise StorageError("a message of a trace has no events")
    return rows


class _Gathered:
    """Events of some turns of one day."""

    def __init__(self, first: int, first_ms: int) -> None:
        self.first = self.end = first
        self.first_ms = self.last_ms = first_ms
        self.rows: list[list[Value]] = []

    def take(self, offset: int, timestamp_ms: int, rows: list[list[Value]]) -> None:
        self.end = offset + 1
        self.last_ms = timestamp_ms
        self.rows += rows

    def piece(self, vhost: str) -> Piece:
        columns = [[vhost] * len(self.rows), *map(list, zip(*self.rows, strict=True))]
        try:
            columns[_TIME] = [ms * 1000 for ms in columns[_TIME]]
            arrays = [_array(column, field) for column, field in zip(columns, TRACE, strict=True)]
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise StorageError(f"an event of a trace has a value of a wrong type: {error}") from None
        batch = pa.RecordBatch.from_arrays(arrays, schema=TRACE)
        return Piece(self.first, self.end, self.first_ms, self.last_ms, batch)


def _array(column: list[Any], field: pa.Field) -> pa.Array:
    try:
        return pa.array(column, field.type)
    except UnicodeEncodeError:  # a lone surrogate, which may be part of a name from the wire
        return pa.array([text(value) if isinstance(value, str) else value for value in column], field.type)
