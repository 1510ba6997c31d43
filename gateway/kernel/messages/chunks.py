"""Chunks: runs of consecutive messages of a stream as bytes, in the same form in a store, in a file and for readers.

chunk: version, first offset, count, timestamps of the first and the last message (ms since the epoch), length of the
entries, then the entries.
entry: timestamp (ms), lengths of filter value and content, then those two. Contents are those of ``contents``.
All integers are big-endian. Consecutive chunks are concatenated. This module imports only modules of messages and the
errors, so that worker processes can import it too.
"""

import struct
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple, TypeAlias

from gateway.kernel.errors import StorageError
from gateway.kernel.messages.contents import EnvelopeNames, pack_header_size
from gateway.kernel.messages.message import Message

CHUNK_VERSION: Final = 1

_HEAD: Final = struct.Struct(">BQIQQI")
ENTRY_FORMAT: Final = ">QBI"
"""The ``struct`` format of an entry's head: timestamp, lengths of filter value and content."""

_ENTRY: Final = struct.Struct(ENTRY_FORMAT)
_pack_entry: Final = _ENTRY.pack

HEAD_SIZE: Final = _HEAD.size
"""The length of a chunk's head, in bytes."""

ENTRY_SIZE: Final = _ENTRY.size
"""The length of an entry's head, in bytes."""

LONGEST_FILTER: Final = 255
"""The longest filter value, in bytes."""

Entry: TypeAlias = tuple[int, bytes, bytes]
"""Timestamp in ms, filter value, content."""


class ChunkHead(NamedTuple):
    """The head of a chunk. It begins at ``position`` of the data; ``size`` is in bytes and includes the head."""

    first: int
    count: int  # type: ignore[assignment]  # replaces ``tuple.count``, which is of no use for a head
    first_ms: int
    last_ms: int
    position: int
    size: int

    @property
    def end(self) -> int:
        """The offset after the last message."""
        return self.first + self.count

    @property
    def entries_size(self) -> int:
        """The size of the entries in bytes."""
        return self.size - HEAD_SIZE


class ChunkBuilder:
    """Builds a chunk of consecutive messages; nothing is copied before ``encoded``.

    ``size`` is that of the entries so far, in bytes.
    """

    __slots__ = (
        "_content_size",
        "_count",
        "_filter_value",
        "_first",
        "_first_ms",
        "_head",
        "_header_size",
        "_last_ms",
        "_names",
        "_pieces",
        "size",
    )

    def __init__(self, first: int) -> None:
        self._names: EnvelopeNames | None = None  # those of the last message, and what it repeated
        self._filter_value = self._head = b""
        self._header_size = self._content_size = 0
        self._first = first
        self._count = 0
        self._first_ms = self._last_ms = 0
        self._pieces = [b""]
        self.size = 0

    def __len__(self) -> int:
        """Return the number of added messages."""
        return self._count

    def add(self, timestamp_ms: int, filter_value: bytes, envelope: bytes, body: bytes) -> None:
        """Add a message; its content is the envelope followed by the body."""
        self._names = None
        content_size = len(envelope) + len(body)
        self._pieces += (_pack_entry(timestamp_ms, len(filter_value), content_size), filter_value, envelope, body)
        self._count_entry(timestamp_ms, ENTRY_SIZE + len(filter_value) + content_size)

    def add_message(self, timestamp_ms: int, filter_value: bytes, names: EnvelopeNames, message: Message) -> None:
        """Add a message with these names. What it has in common with the last one is encoded once."""
        header, body = message.header.stored_raw, message.body
        header_size = len(header)
        content_size = names.size + header_size + len(body)
        if (
            names is not self._names
            or timestamp_ms != self._last_ms
            or header_size != self._header_size
            or content_size != self._content_size
            or filter_value != self._filter_value
        ):
            self._head = b"".join(
                (
                    _pack_entry(timestamp_ms, len(filter_value), content_size),
                    filter_value,
                    names.sizes,
                    pack_header_size(header_size),
                    names.names,
                )
            )
            self._names, self._filter_value = names, filter_value
            self._header_size, self._content_size = header_size, content_size
        pieces = self._pieces
        pieces.append(self._head)
        pieces.append(header)
        pieces.append(body)
        self._count_entry(timestamp_ms, ENTRY_SIZE + len(filter_value) + content_size)

    def _count_entry(self, timestamp_ms: int, size: int) -> None:
        self.size += size
        if not self._count:
            self._first_ms = timestamp_ms
        self._last_ms = timestamp_ms
        self._count += 1

    def encoded(self) -> bytes:
        """Return the chunk; it must have at least one message."""
        self._pieces[0] = _HEAD.pack(CHUNK_VERSION, self._first, self._count, self._first_ms, self._last_ms, self.size)
        return b"".join(self._pieces)


def encode_chunk(first: int, entries: Sequence[Entry]) -> bytes:
    """Return the chunk of these messages (at least one, in order); the first one has the offset ``first``."""
    builder = ChunkBuilder(first)
    for timestamp_ms, filter_value, content in entries:
        builder.add(timestamp_ms, filter_value, b"", content)
    return builder.encoded()


def read_head(data: bytes, position: int = 0) -> ChunkHead:
    """Return the head of the chunk that begins at ``position``; the entries may be missing.

    :raises StorageError: if the head is incomplete, or a newer gateway wrote it.
    """
    if position + HEAD_SIZE > len(data):
        raise StorageError("the head of a chunk is incomplete")
    version, first, count, first_ms, last_ms, size = _HEAD.unpack_from(data, position)
    if version != CHUNK_VERSION:
        raise StorageError(f"a chunk has layout {version}, but this gateway reads layout {CHUNK_VERSION}")
    return ChunkHead(first, count, first_ms, last_ms, position, HEAD_SIZE + size)


def chunk_heads(data: bytes, position: int = 0) -> Iterator[ChunkHead]:
    """Yield the head of each chunk, the first one at ``position``.

    :raises StorageError: if the last is incomplete, or a newer gateway wrote one.
    """
    while position < len(data):
        head = read_head(data, position)
        position += head.size
        if position > len(data):
            raise incomplete(head)
        yield head


def incomplete(head: ChunkHead) -> StorageError:
    """Return the error for a chunk with less entries than its head announces."""
    return StorageError(f"the chunk from offset {head.first} is incomplete")


def entries(data: bytes, from_offset: int = 0, position: int = 0) -> Iterator[tuple[int, int, bytes, bytes]]:
    """Yield offset, timestamp in ms, filter value and content of each message from ``from_offset`` on.

    The first chunk is at ``position``.

    :raises StorageError: if the last chunk is incomplete, or a newer gateway wrote one.
    """
    unpack = _ENTRY.unpack_from
    for head in chunk_heads(data, position):
        if head.end <= from_offset:
            continue
        at = head.position + HEAD_SIZE
        stop = head.position + head.size
        for offset in range(head.first, head.end):
            try:
                timestamp_ms, filter_size, content_size = unpack(data, at)
            except struct.error:
                raise incomplete(head) from None
            content = at + ENTRY_SIZE + filter_size
            at = content + content_size
            if at > stop:
                raise incomplete(head)
            if offset >= from_offset:
                yield offset, timestamp_ms, data[content - filter_size : content], data[content:at]


def merge_chunks(chunks: Sequence[bytes]) -> bytes:
    """Merge at least one chunk, consecutive and without gaps, into one.

    :raises StorageError: if there is a gap, or a chunk is incomplete.
    """
    heads = [read_head(chunk) for chunk in chunks]
    for chunk, begin in zip(chunks, heads, strict=True):
        if begin.size > len(chunk):
            raise incomplete(begin)
    for one, other in pairwise(heads):
        if one.end != other.first:
            raise StorageError(f"a chunk ends before offset {one.end}, but the next one begins with {other.first}")
    if len(chunks) == 1:
        return chunks[0]
    first, last = heads[0], heads[-1]
    size = sum(head.entries_size for head in heads)
    head = _HEAD.pack(CHUNK_VERSION, first.first, last.end - first.first, first.first_ms, last.last_ms, size)
    return b"".join((head, *(memoryview(chunk)[HEAD_SIZE:] for chunk in chunks)))
