"""Writing streams to their tables: appended chunks, sealed segments, and truncation."""

from typing import Final

import lmdb

from gateway.kernel.caches import remember
from gateway.kernel.journal.changes import EVERYTHING, Appended, Sealed, StreamSegment, Truncated
from gateway.kernel.messages.chunks import ChunkBuilder
from gateway.kernel.messages.contents import EnvelopeNames
from gateway.kernel.messages.message import Message
from gateway_lmdb.records import decode_segment, encode_segment
from gateway_lmdb.schema import Tables, Transaction, pack_number, pack_place, unpack_place
from gateway_lmdb.stream_batch import Filed, StreamBatch, StreamChange
from gateway_lmdb.stream_tables import end_of_stream

#: The maximum size of a chunk, in bytes. Large chunks need fewer records, but finding an offset in one takes longer.
CHUNK_SIZE: Final = 128 * 1024

#: The names in the cache, which is cleared when it is full.
_MOST_NAMES: Final = 4096


class StreamWriter:
    """Writes the stream changes of a batch, on the writer's thread.

    Caches the end of each stream, so that repeated appends are written once; an update in a transaction takes effect
    with ``committed``.
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._names: dict[tuple[str, str, str], EnvelopeNames] = {}
        self._ends: dict[int, int] = {}
        self._new_ends: dict[int, int] = {}

    def write(self, transaction: Transaction, batch: StreamBatch) -> None:
        """Write a batch. A failed transaction is repeated from the start."""
        self._new_ends = {}
        for stream_id, changes in batch:
            self._write_stream(transaction, stream_id, changes)

    def committed(self) -> None:
        """Update the cached ends after the transaction of the last batch is committed."""
        self._ends.update(self._new_ends)

    def _write_stream(self, transaction: Transaction, stream_id: int, changes: list[StreamChange]) -> None:
        end = self._ends.get(stream_id)
        if end is None:
            end = end_of_stream(transaction, self._tables, stream_id)
        names: EnvelopeNames | None = None
        chunk = ChunkBuilder(end)
        for change in changes:
            if isinstance(change, Appended):
                if change.offset < end:
                    continue
                message = change.message
                if names is None or not names.are_of(message):
                    names = self._names_of(message)
                chunk.add_message(change.timestamp_ms, change.filter_value, names, message)
                end += 1
                if chunk.size < CHUNK_SIZE:
                    continue
            self._put(transaction, stream_id, end, chunk)
            if not isinstance(change, Appended):
                self._write_change(transaction, change)
                if isinstance(change, Truncated):  # the stream is deleted, or starts at this offset
                    end = 0 if change.first == EVERYTHING else max(end, change.first)
            chunk = ChunkBuilder(end)
        self._put(transaction, stream_id, end, chunk)
        self._new_ends[stream_id] = end

    def _names_of(self, message: Message) -> EnvelopeNames:
        identity = (message.exchange, message.routing_key, message.header.format.name)
        names = self._names.get(identity)
        return remember(self._names, identity, EnvelopeNames(message), _MOST_NAMES) if names is None else names

    def _put(self, transaction: Transaction, stream_id: int, end: int, chunk: ChunkBuilder) -> None:
        """Put a chunk that ends at this offset, unless it is empty."""
        if len(chunk):
            transaction.put(pack_place(stream_id, end - len(chunk)), chunk.encoded(), db=self._tables.chunks)

    def _write_change(self, transaction: Transaction, change: Sealed | Truncated | Filed) -> None:
        match change:
            case Sealed(segment):
                self._seal(transaction, segment)
            case Truncated(stream_id, first):
                self._truncate(transaction, stream_id, first)
            case Filed(stream_id, first, end):
                self._file(transaction, stream_id, first, end)

    def _seal(self, transaction: Transaction, segment: StreamSegment) -> None:
        key = pack_place(segment.stream_id, segment.first)
        transaction.put(key, encode_segment(segment, is_filed=False), db=self._tables.segments, overwrite=False)

    def _truncate(self, transaction: Transaction, stream_id: int, first: int) -> None:
        for table in (self._tables.chunks, self._tables.segments):
            _delete(transaction, table, stream_id, 0, first)
        mark = pack_number(stream_id)
        if first == EVERYTHING:
            transaction.delete(mark, db=self._tables.streams)
        elif pack_number(first) > (transaction.get(mark, db=self._tables.streams) or b""):
            transaction.put(mark, pack_number(first), db=self._tables.streams)

    def _file(self, transaction: Transaction, stream_id: int, first: int, end: int) -> None:
        """Delete the chunks of a segment that is in a file; do nothing if it was truncated meanwhile."""
        key = pack_place(stream_id, first)
        record = transaction.get(key, db=self._tables.segments)
        if record is not None:
            segment, _ = decode_segment(stream_id, first, record)
            transaction.put(key, encode_segment(segment, is_filed=True), db=self._tables.segments)
            _delete(transaction, self._tables.chunks, stream_id, first, end)


def _delete(transaction: Transaction, table: lmdb._Database, stream_id: int, first: int, end: int) -> None:
    """Delete every record of a stream from one offset up to another."""
    with transaction.cursor(table) as cursor:
        cursor.set_range(pack_place(stream_id, first))
        while (key := cursor.key()) and unpack_place(key) < (stream_id, end):
            cursor.delete()
