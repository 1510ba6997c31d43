"""Frames of rows for the broker, from Arrow batches: no body becomes an object of Python.

A frame is two lengths of four bytes, big-endian, then the head, then the body. A head of length 0 repeats that of the
previous row; the first row of a part has one.
"""

import sys
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from struct import Struct
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from gateway_spark.errors import PipelineError
from gateway_spark.rows import Heads

LENGTHS: Final = Struct(">II")

#: Columns with offsets of eight bytes: the bodies of a batch may be larger than 2 GiB together.
_BINARY: Final = pa.large_binary()
_SEPARATOR: Final = pa.scalar(b"", _BINARY)


def framed(batches: Iterable[Any], part_bytes: int) -> Iterator[tuple[bytes, int]]:
    """Yield the rows of Arrow batches in parts of about this many bytes, with the number of rows in each.

    :raises PipelineError: for a row without a body, or with headers that are not JSON.
    """
    heads, earlier, part = Heads(), b"", _Part(part_bytes)
    for batch in batches:
        if not len(batch):
            continue
        frames = _Frames(batch, heads.of(batch), earlier)
        row = 0
        while row < len(frames):
            row = part.add(frames, row)
            if part.is_full:
                yield part.content, part.rows
                part = _Part(part_bytes)
        earlier = frames.last_head
    if part.rows:
        yield part.content, part.rows


class _Frames:
    """The frames of an Arrow batch with rows in one buffer: the frame of a row is between two ``offsets``.

    The head of a row that repeats the one before it, ``earlier`` for the first, is not in its frame.
    """

    def __init__(self, batch: Any, heads: list[bytes], earlier: bytes) -> None:
        bodies = batch.column("body")
        if bodies.null_count:
            raise PipelineError("column 'body' is null in a row; a message has a body, which may be empty")
        bodies = bodies.cast(_BINARY)
        self._heads = heads
        formers = [earlier, *heads[:-1]]
        self._written = [b"" if head == former else head for head, former in zip(heads, formers, strict=True)]
        self._sizes = array("I", _numbers(pc.binary_length(bodies), 1))
        columns = [_lengths(self._written, self._sizes), bodies]
        if any(self._written):
            columns.insert(1, pa.array(self._written, _BINARY))
        joined = pc.binary_join_element_wise(*columns, _SEPARATOR)
        self.offsets = _numbers(joined, 1, further=1)
        self.content = memoryview(joined.buffers()[2])
        self.last_head = heads[-1]

    def __len__(self) -> int:
        return len(self._sizes)

    def repeated_head(self, row: int) -> bytes:
        """Return the lengths and the head of a row whose frame has no head; empty if it has one."""
        if self._written[row]:
            return b""
        return LENGTHS.pack(len(self._heads[row]), self._sizes[row]) + self._heads[row]


class _Part:
    """A part, which gets rows until it has at least ``part_bytes``."""

    def __init__(self, part_bytes: int) -> None:
        self.rows = 0
        self._left = part_bytes
        self._pieces: list[bytes | memoryview] = []

    @property
    def is_full(self) -> bool:
        """Whether it has as many bytes as it should."""
        return self._left <= 0

    @property
    def content(self) -> bytes:
        """The frames."""
        return b"".join(self._pieces)

    def add(self, frames: _Frames, row: int) -> int:
        """Add frames from ``row`` on until the part is full; return the row after them."""
        offsets = frames.offsets
        start = offsets[row]
        if not self.rows and (head := frames.repeated_head(row)):
            self._add(head)
            start += LENGTHS.size
        end_row = min(bisect_left(offsets, start + self._left, row + 1), len(frames))
        self._add(frames.content[start : offsets[end_row]])
        self.rows += end_row - row
        return end_row

    def _add(self, piece: bytes | memoryview) -> None:
        self._pieces.append(piece)
        self._left -= len(piece)


def _numbers(column: Any, buffer: int, further: int = 0) -> "memoryview[int]":
    """Return the numbers of eight bytes in a buffer of a column: one for each row, and ``further`` ones."""
    numbers = memoryview(column.buffers()[buffer]).cast("q")
    return numbers[column.offset : column.offset + len(column) + further]


def _lengths(heads: list[bytes], body_sizes: "array[int]") -> Any:
    """Return the column of the lengths of heads and bodies."""
    rows = len(body_sizes)
    lengths = array("I", bytes(LENGTHS.size * rows))
    lengths[0::2] = array("I", map(len, heads))
    lengths[1::2] = body_sizes
    if sys.byteorder == "little":
        lengths.byteswap()
    ends = array("q", range(0, LENGTHS.size * rows + 1, LENGTHS.size))
    return pa.Array.from_buffers(_BINARY, rows, [None, pa.py_buffer(ends), pa.py_buffer(lengths)])
