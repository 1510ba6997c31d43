"""Reading streams from their tables, on any thread: end, segments and chunks of a stream."""

from collections.abc import Iterator

import lmdb

from gateway.kernel.journal.changes import EVERYTHING, StreamSegment
from gateway.kernel.messages.chunks import HEAD_SIZE, ChunkHead, read_head
from gateway_lmdb.records import decode_segment
from gateway_lmdb.schema import Tables, Transaction, pack_number, pack_place, unpack_number, unpack_place

#: Above every stream id.
_NO_STREAM = 1 << 64


def stream_ids(transaction: Transaction, tables: Tables) -> set[int]:
    """Return the ids of all streams with any data."""
    found = set()
    for table in (tables.chunks, tables.segments):
        with transaction.cursor(table) as cursor:
            stream_id = 0
            while stream_id < _NO_STREAM and cursor.set_range(pack_place(stream_id, 0)):
                found.add(unpack_place(cursor.key())[0])
                stream_id = unpack_place(cursor.key())[0] + 1
    with transaction.cursor(tables.streams) as cursor:
        found.update(unpack_number(key) for key in cursor.iternext(keys=True, values=False))
    return found


def first_of_stream(transaction: Transaction, tables: Tables, stream_id: int) -> int:
    """Return the first offset of a stream."""
    mark = transaction.get(pack_number(stream_id), db=tables.streams)
    return 0 if mark is None else unpack_number(mark)


def end_of_stream(transaction: Transaction, tables: Tables, stream_id: int) -> int:
    """Return the offset after the last message of a stream."""
    end = first_of_stream(transaction, tables, stream_id)
    for table, end_of in ((tables.segments, _end_of_segment), (tables.chunks, _end_of_chunk)):
        with transaction.cursor(table) as cursor:
            if _seek(cursor, stream_id, EVERYTHING):
                end = max(end, end_of(cursor))
    return end


def _end_of_segment(cursor: "lmdb.Cursor[bytes]") -> int:
    return decode_segment(*unpack_place(cursor.key()), cursor.value())[0].end


def _end_of_chunk(cursor: "lmdb.Cursor[bytes]") -> int:
    return read_head(cursor.value()).end


def segments_of_stream(
    transaction: Transaction, tables: Tables, stream_id: int
) -> Iterator[tuple[StreamSegment, bool]]:
    """Yield the sealed segments in order, and whether each is in a file."""
    with transaction.cursor(tables.segments) as cursor:
        found = cursor.set_range(pack_place(stream_id, 0))
        while found:
            owner, first = unpack_place(cursor.key())
            if owner != stream_id:
                return
            yield decode_segment(stream_id, first, cursor.value())
            found = cursor.next()


def segment_at(
    transaction: Transaction, tables: Tables, stream_id: int, offset: int
) -> tuple[StreamSegment, bool] | None:
    """Return the sealed segment that contains a message, and whether it is in a file; ``None`` if there is none."""
    with transaction.cursor(tables.segments) as cursor:
        if not _seek(cursor, stream_id, offset):
            return None
        segment, is_filed = decode_segment(stream_id, unpack_place(cursor.key())[1], cursor.value())
        return (segment, is_filed) if offset < segment.end else None


def heads_from(
    transaction: "lmdb.Transaction[memoryview]", tables: Tables, stream_id: int, offset: int
) -> Iterator[ChunkHead]:
    """Yield the heads of the chunks that start at ``offset`` or later, without reading their messages."""
    with transaction.cursor(tables.chunks) as cursor:
        found = cursor.set_range(pack_place(stream_id, offset))
        while found and unpack_place(bytes(cursor.key()))[0] == stream_id:
            yield read_head(bytes(cursor.value()[:HEAD_SIZE]))
            found = cursor.next()


def chunks_from(
    transaction: Transaction, tables: Tables, stream_id: int, offset: int, most_bytes: int, end: int = EVERYTHING
) -> list[bytes]:
    """Return consecutive chunks, starting with that of ``offset``; none if it is not in the table.

    They have at most ``most_bytes``, unless the first one alone is longer, and start before ``end``.
    """
    chunks: list[bytes] = []
    with transaction.cursor(tables.chunks) as cursor:
        found = _seek(cursor, stream_id, offset)
        while found and unpack_place(cursor.key())[0] == stream_id:
            chunk = cursor.value()
            head = read_head(chunk)
            most_bytes -= len(chunk)
            is_next = head.first == offset if chunks else offset < head.end
            if not is_next or head.first >= end or (chunks and most_bytes < 0):
                break
            chunks.append(chunk)
            offset = head.end
            found = cursor.next()
    return chunks


def _seek(cursor: "lmdb.Cursor[bytes]", stream_id: int, offset: int) -> bool:
    """Move to the last record of a stream that starts at ``offset`` or before; return whether it exists."""
    if cursor.set_range(pack_place(stream_id, offset)):
        if unpack_place(cursor.key()) == (stream_id, offset):
            return True
        found = cursor.prev()
    else:
        found = cursor.last()
    return found and unpack_place(cursor.key())[0] == stream_id
