"""Conversion of messages from rows to columns; the values of an envelope are computed once for each batch."""

from array import array
from collections.abc import Iterable, Iterator
from typing import Any, Final

import pyarrow as pa

from gateway.columnar.encoding.envelope_columns import text
from gateway.columnar.encoding.envelope_reader import EnvelopeReader
from gateway.columnar.encoding.envelope_rows import EnvelopeRows
from gateway.columnar.encoding.pieces import Piece
from gateway.columnar.encoding.rows import Rows, rows_between
from gateway.columnar.encoding.schema import ENVELOPE, MESSAGES, MQTT, TIMESTAMP

_ENVELOPE_SCHEMA: Final = pa.schema(ENVELOPE)

_FALSE: Final = pa.scalar(False, pa.bool_())
_NO_HEADERS: Final = pa.scalar("{}", pa.string())


class MessageColumns:
    """Converts the messages of any stream to columns."""

    schema = MESSAGES

    def __init__(self, reader: EnvelopeReader) -> None:
        self._reader = reader

    def pieces(
        self, chunks: Iterable[bytes], first: int, end: int, *, vhost: str, queue: str | None, partition: int = 0
    ) -> Iterator[Piece]:
        """Yield the messages from ``first`` to before ``end``; the other parameters identify their stream."""
        place = (_text(vhost), _text(queue), pa.scalar(partition, pa.int32()))
        for rows in rows_between(chunks, first, end):
            times = rows.timestamps
            batch = self._batch(rows, place)
            yield Piece(rows.first, rows.first + len(rows), times[0] // 1000, times[-1] // 1000, batch)

    def _batch(self, rows: Rows, place: tuple[pa.Scalar, ...]) -> pa.RecordBatch:
        count = len(rows)
        offsets = array("q", range(rows.first, rows.first + count))
        origin = [
            *(pa.repeat(value, count) for value in place),
            _over(pa.int64(), offsets),
            _over(TIMESTAMP, rows.timestamps),
        ]
        shared = self._envelope_columns(rows.envelopes)
        if len(rows.envelopes) < count:
            shared = shared.take(_over(pa.int32(), rows.codes))
        bodies = pa.array(rows.bodies, pa.binary())
        return pa.RecordBatch.from_arrays([*origin, *shared.columns, bodies], schema=MESSAGES)

    def _envelope_columns(self, envelopes: Iterable[bytes]) -> pa.RecordBatch:
        """Return the envelope columns, one row for each envelope."""
        rows = EnvelopeRows()
        for envelope in envelopes:
            self._reader.add(envelope, rows)
        rows.complete()
        columns = zip(_ENVELOPE_SCHEMA, rows.values, strict=True)
        arrays = [_array(rows, field, values) for field, values in columns]
        return pa.RecordBatch.from_arrays(arrays, schema=_ENVELOPE_SCHEMA)


def _array(rows: EnvelopeRows, field: pa.Field, values: list[Any]) -> pa.Array:
    match field.name:
        case "redelivered":
            return pa.repeat(_FALSE, rows.count)
        case "headers":
            names, texts = pa.array(rows.header_names, pa.string()), pa.array(rows.header_texts, pa.string())
            return pa.MapArray.from_arrays(_over(pa.int32(), rows.header_ends), names, texts, type=field.type)
        case "headers_json":
            return pa.array(values, pa.string()).fill_null("{}") if values else pa.repeat(_NO_HEADERS, rows.count)
        case "mqtt" if rows.topics:
            members = (rows.topics, rows.qos, rows.retain)
            arrays = [pa.array(each, member.type) for each, member in zip(members, MQTT, strict=True)]
            return pa.StructArray.from_arrays(arrays, fields=list(MQTT), mask=arrays[0].is_null())
    return pa.array(values, field.type) if values else pa.nulls(rows.count, field.type)


def _text(value: str | None) -> pa.Scalar:
    return pa.scalar(None if value is None else text(value), pa.string())


def _over(kind: pa.DataType, numbers: "array[Any]") -> pa.Array:
    """Return an array that shares the memory of these numbers."""
    return pa.Array.from_buffers(kind, len(numbers), [None, pa.py_buffer(numbers)])
