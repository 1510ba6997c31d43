"""The file of a sealed segment in Arrow's stream format, with an index from which any range of offsets can be
copied.

The file holds a schema message, record batches, the end-of-stream marker, an index in JSON, the index's length in
four bytes, big-endian, and ``GWAI``. It is a valid Arrow stream; so is the schema followed by any of the batches
and ``END_OF_STREAM``. This module does not need Arrow: the broker serves streams by copying bytes.
"""

import json
from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path
from struct import Struct
from typing import BinaryIO, Final, NamedTuple, Self

END_OF_STREAM: Final = b"\xff\xff\xff\xff\x00\x00\x00\x00"

_MAGIC: Final = b"GWAI"
_LENGTH: Final = Struct(">I4s")


class SealedBatch(NamedTuple):
    """One record batch: the offset of its first row, its row count, and its position and size in the file, in bytes."""

    first: int
    rows: int
    position: int
    size: int


class SealedFile:
    """A sealed file with its index. It keeps no file open, because a segment may be truncated at any time."""

    __slots__ = ("batches", "path", "schema_size")

    def __init__(self, path: Path, schema_size: int, batches: Sequence[SealedBatch]) -> None:
        self.path = path
        self.schema_size = schema_size
        self.batches = tuple(batches)

    @classmethod
    def read(cls, path: Path) -> Self | None:
        """Return the file of this name; ``None`` if it is missing or does not have this format."""
        try:
            with path.open("rb") as file:
                return cls(path, *_read_index(file))
        except (OSError, ValueError, KeyError, TypeError, RecursionError, OverflowError):
            return None

    @property
    def end(self) -> int:
        """The offset after the last row."""
        return self.batches[-1].first + self.batches[-1].rows if self.batches else 0

    def batches_between(self, first: int, end: int) -> tuple[SealedBatch, ...]:
        """Return the whole batches that overlap the offsets from ``first`` to before ``end``."""
        after = bisect_right(self.batches, first, key=lambda batch: batch.first)
        return tuple(batch for batch in self.batches[max(0, after - 1) :] if _meets(batch, first, end))


def index_of(schema_size: int, batches: Sequence[SealedBatch]) -> bytes:
    """Return the bytes of the index, which follow the end-of-stream marker."""
    index = json.dumps({"schema": schema_size, "batches": batches}, separators=(",", ":")).encode()
    return index + _LENGTH.pack(len(index), _MAGIC)


def _meets(batch: SealedBatch, first: int, end: int) -> bool:
    return batch.first < end and batch.first + batch.rows > first


def _read_index(file: BinaryIO) -> tuple[int, list[SealedBatch]]:
    size = file.seek(0, 2)
    file.seek(max(0, size - _LENGTH.size))
    tail = file.read()
    if len(tail) != _LENGTH.size:
        raise ValueError("too short")
    length, magic = _LENGTH.unpack(tail)
    if magic != _MAGIC or length > size - _LENGTH.size:
        raise ValueError("no index")
    file.seek(size - _LENGTH.size - length)
    index = json.loads(file.read(length))
    return int(index["schema"]), [SealedBatch(*map(int, batch)) for batch in index["batches"]]
