"""Responses of known size that are read while they are sent: parts of files, and long byte strings."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from io import RawIOBase
from pathlib import Path
from typing import Final, NamedTuple, Self

#: Bytes written in one turn: enough for throughput, few enough to delay others by 0.1 ms only.
PIECE_SIZE: Final = 128 * 1024


class Extent(NamedTuple):
    """A part of a file, in bytes."""

    position: int
    size: int


@dataclass(frozen=True, slots=True)
class Download:
    """A response with status 200. ``pieces`` are read while they are sent; ``close`` is called at the end."""

    headers: Mapping[str, str]
    size: int
    pieces: Iterator[bytes]
    close: Callable[[], None] = lambda: None

    @classmethod
    def of_bytes(cls, content: bytes, headers: Mapping[str, str]) -> Self:
        """Return a response of these bytes."""
        return cls(headers, len(content), _cut(memoryview(content)))

    @classmethod
    def of_file(cls, path: Path, extents: Sequence[Extent], end: bytes, headers: Mapping[str, str]) -> Self | None:
        """Return a response of parts of a file followed by ``end``; ``None`` if the file does not exist (any more)."""
        try:
            file = path.open("rb", buffering=0)
        except OSError:
            return None
        size = sum(extent.size for extent in extents) + len(end)
        return cls(headers, size, _read(file, extents, end), file.close)

    def closing(self, call: Callable[[], None]) -> Self:
        """Return the same response with a further call on close."""

        def close() -> None:
            self.close()
            call()

        return replace(self, close=close)


def _cut(content: memoryview) -> Iterator[bytes]:
    for position in range(0, len(content), PIECE_SIZE):
        yield bytes(content[position : position + PIECE_SIZE])


def _read(file: RawIOBase, extents: Sequence[Extent], end: bytes) -> Iterator[bytes]:
    for position, size in extents:
        file.seek(position)
        left = size
        while left:
            piece = file.read(min(left, PIECE_SIZE))
            if not piece:
                raise EOFError("a file is shorter than its index")
            left -= len(piece)
            yield piece
    yield end
