"""Conversion of messages from rows to columns; the values of an envelope are computed once for each batch."""

from collections.abc import Iterable, Iterator

import pyarrow as pa

from gateway.columnar.encoding.direct_rows import Batch, DirectReader, DirectRows
from gateway.columnar.encoding.envelope_arrays import ENVELOPE_SCHEMA, envelope_arrays, over
from gateway.columnar.encoding.envelope_columns import text
from gateway.columnar.encoding.envelope_reader import EnvelopeReader
from gateway.columnar.encoding.envelope_rows import EnvelopeRows
from gateway.columnar.encoding.pieces import Piece
from gateway.columnar.encoding.rows import rows_between
from gateway.columnar.encoding.schema import MESSAGES, TIMESTAMP


class MessageColumns:
    """Converts the messages of any stream to columns.

    :param direct: reads the batches that it can, the reader of envelopes the others.
    """

    schema = MESSAGES

    def __init__(self, reader: EnvelopeReader, direct: DirectReader | None = None) -> None:
        self._reader = reader
        self._direct = direct

    def pieces(
        self, chunks: Iterable[bytes], first: int, end: int, *, vhost: str, queue: str | None, partition: int = 0
    ) -> Iterator[Piece]:
        """Yield the messages from ``first`` to before ``end``; the other parameters identify their stream."""
        place = (_text(vhost), _text(queue), pa.scalar(partition, pa.int32()))
        for rows in self._batches(chunks, first, end):
            times = rows.timestamps
            batch = self._batch(rows, place)
            yield Piece(rows.first, rows.first + len(rows), times[0] // 1000, times[-1] // 1000, batch)

    def _batches(self, chunks: Iterable[bytes], first: int, end: int) -> Iterator[Batch]:
        if self._direct is None:
            return rows_between(chunks, first, end)
        return self._direct.batches(b"".join(chunks), first, end)

    def _batch(self, rows: Batch, place: tuple[pa.Scalar, ...]) -> pa.RecordBatch:
        count = len(rows)
        origin = [
            *(pa.repeat(value, count) for value in place),
            over(pa.int64(), rows.offsets),
            over(TIMESTAMP, rows.timestamps),
        ]
        if isinstance(rows, DirectRows):
            return pa.RecordBatch.from_arrays([*origin, *rows.columns, rows.bodies], schema=MESSAGES)
        shared = self._envelope_columns(rows.envelopes)
        if len(rows.envelopes) < count:
            shared = shared.take(over(pa.int32(), rows.codes))
        bodies = pa.array(rows.bodies, pa.binary())
        return pa.RecordBatch.from_arrays([*origin, *shared.columns, bodies], schema=MESSAGES)

    def _envelope_columns(self, envelopes: Iterable[bytes]) -> pa.RecordBatch:
        """Return the envelope columns, one row for each envelope."""
        rows = EnvelopeRows()
        for envelope in envelopes:
            self._reader.add(envelope, rows)
        rows.complete()
        return pa.RecordBatch.from_arrays(envelope_arrays(rows), schema=ENVELOPE_SCHEMA)


def _text(value: str | None) -> pa.Scalar:
    return pa.scalar(None if value is None else text(value), pa.string())
