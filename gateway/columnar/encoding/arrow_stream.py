"""Encoding of columns as an Arrow stream: as bytes for a reader, or as the file of a sealed segment."""

import io
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO, Final

import pyarrow as pa

from gateway.columnar.encoding.pieces import Piece
from gateway.columnar.encoding.schema import MESSAGES
from gateway.columnar.tables.files import replaced
from gateway.columnar.tables.sealed import SealedBatch, index_of

#: LZ4 reduces repetitive columns to almost nothing, at almost no cost.
_OPTIONS: Final = pa.ipc.IpcWriteOptions(compression="lz4")

_SCHEMA_SIZE: Final = MESSAGES.serialize().size


def arrow_stream(pieces: Iterable[Piece]) -> bytes:
    """Return an Arrow stream of these pieces; there may be none."""
    sink = io.BytesIO()
    _write(sink, pieces)
    return sink.getvalue()


def write_sealed(path: Path, pieces: Iterable[Piece], *, is_synced: bool = True) -> int:
    """Write the file of a sealed segment atomically; return its size in bytes. For ``is_synced`` see ``replaced``."""
    with replaced(path, is_synced=is_synced) as file:
        file.write(index_of(*_write(file, pieces)))
        return file.tell()


def _write(sink: BinaryIO, pieces: Iterable[Piece]) -> tuple[int, list[SealedBatch]]:
    """Write an Arrow stream; return the size of its schema and the positions of its batches."""
    written: list[SealedBatch] = []
    with pa.ipc.new_stream(sink, MESSAGES, options=_OPTIONS) as writer:
        position = _SCHEMA_SIZE  # the writer does not write the schema before the first batch
        for piece in pieces:
            writer.write_batch(piece.batch)
            end = sink.tell()
            written.append(SealedBatch(piece.first, piece.batch.num_rows, position, end - position))
            position = end
    return _SCHEMA_SIZE, written
