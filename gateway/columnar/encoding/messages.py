"""Conversion of messages from rows to columns; envelope values are computed once and repeated."""

from array import array
from collections.abc import Iterable, Iterator
from typing import Any, Final

import pyarrow as pa

from gateway.columnar.encoding.envelope_columns import EnvelopeColumns, EnvelopeDecoder, text
from gateway.columnar.encoding.pieces import Piece
from gateway.columnar.encoding.rows import Rows, rows_between
from gateway.columnar.encoding.schema import ENVELOPE, MESSAGES, TIMESTAMP
from gateway.kernel.caches import remember
from gateway.kernel.messages.contents import decode_content

#: Envelopes whose values are cached. A full cache is cleared, which is cheaper than evicting single entries.
_MOST_KEPT: Final = 8192

_ENVELOPE_SCHEMA: Final = pa.schema(ENVELOPE)


class MessageColumns:
    """Converts the messages of any stream to columns. Caches the values of envelopes."""

    schema = MESSAGES

    def __init__(self, decoder: EnvelopeDecoder) -> None:
        self._decoder = decoder
        self._columns: dict[bytes, EnvelopeColumns] = {}

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
        rows = [self._columns.get(envelope) or self._decoded(envelope) for envelope in envelopes]
        columns = zip(*rows, strict=True)
        arrays = [pa.array(column, field.type) for column, field in zip(columns, _ENVELOPE_SCHEMA, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=_ENVELOPE_SCHEMA)

    def _decoded(self, envelope: bytes) -> EnvelopeColumns:
        return remember(self._columns, envelope, self._decoder.columns(decode_content(envelope)), _MOST_KEPT)


def _text(value: str | None) -> pa.Scalar:
    return pa.scalar(None if value is None else text(value), pa.string())


def _over(kind: pa.DataType, numbers: "array[Any]") -> pa.Array:
    """Return an array that shares the memory of these numbers."""
    return pa.Array.from_buffers(kind, len(numbers), [None, pa.py_buffer(numbers)])
