"""Sealed segments of streams in files: where they lie, and reading them.

``streams/<stream id>/<first offset, 20 digits>.chunks`` holds the chunks of one segment, one behind the other. It does
not change; it appears under its name whole and synced. What lies beside it and begins with the same number (``.arrow``)
belongs to it and goes with it; names that end in ``.tmp`` are work that was never finished.
"""

import os
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable
from contextlib import suppress
from errno import EMLINK, ENOTSUP, EPERM, EXDEV
from pathlib import Path
from shutil import rmtree
from typing import Final

from gateway.kernel.errors import StorageError
from gateway.kernel.messages.chunks import HEAD_SIZE, read_head
from gateway_lmdb.environment import sync_directories

#: The directory beside the store's own files.
DIRECTORY: Final = "streams"

#: How the name of a file ends that is still being written.
UNFINISHED: Final = ".tmp"

#: How much of a file is written before it is synced, in bytes: a whole segment at once would hold up the next commit.
_SYNC_SIZE: Final = 4 * 1024 * 1024

#: How much of a file is copied at a time, in bytes.
_COPY_SIZE: Final = 1024 * 1024

#: Files kept open for readers.
_MOST_OPEN: Final = 32


class SegmentFile:
    """One file, open for reading, and where its chunks begin."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._size = os.fstat(self._descriptor).st_size
        self._firsts = array("Q")
        self._positions = array("Q")
        position = 0
        while position < self._size:
            head = read_head(os.pread(self._descriptor, HEAD_SIZE, position))
            self._firsts.append(head.first)
            self._positions.append(position)
            position += head.size
        self._positions.append(position)

    def read(self, offset: int, most_bytes: int) -> bytes:
        """Return chunks, the first with the message at ``offset``, which must be here; ``most_bytes`` or one chunk."""
        place = bisect_right(self._firsts, offset) - 1
        begin = self._positions[place]
        last = bisect_right(self._positions, begin + most_bytes) - 1
        end = self._positions[max(last, place + 1)]
        return os.pread(self._descriptor, end - begin, begin)

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


class SegmentFiles:
    """The files below one directory. Reading is for the kernel's thread alone, the rest for the sealer's."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._open: dict[Path, SegmentFile] = {}

    def path(self, stream_id: int, first: int) -> Path:
        """Return the name of a segment's file, whether or not it is there."""
        return self.directory / str(stream_id) / f"{first:020}.chunks"

    def read(self, stream_id: int, first: int, offset: int, most_bytes: int) -> bytes | None:
        """Return chunks of the segment that begins with ``first``; ``None`` when its file is gone.

        :raises StorageError: when it cannot be read, or is torn.
        """
        path = self.path(stream_id, first)
        try:
            return self._opened(path).read(offset, most_bytes)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StorageError(f"{path} cannot be read: {error}") from error

    def _opened(self, path: Path) -> SegmentFile:
        """Return an open file, the one used longest ago being closed for it."""
        file = self._open.pop(path, None) or SegmentFile(path)
        self._open[path] = file
        if len(self._open) > _MOST_OPEN:
            self._open.pop(next(iter(self._open))).close()
        return file

    def close(self) -> None:
        """Close what is open."""
        while self._open:
            self._open.popitem()[1].close()

    def remove(self, stream_id: int, end: int) -> None:
        """Remove the files of every segment of a stream that begins below ``end``."""
        for path in _listed(self.directory / str(stream_id)):
            first = path.name.split(".")[0]
            if first.isdecimal() and int(first) < end:
                path.unlink(missing_ok=True)

    def remove_stream(self, stream_id: int) -> None:
        """Remove every file of a stream."""
        rmtree(self.directory / str(stream_id), ignore_errors=True)

    def clean(self, firsts_by_stream: "dict[int, set[int]]") -> None:
        """Remove every file that belongs to none of these segments, and what was never finished."""
        for directory in _listed(self.directory):
            firsts = firsts_by_stream.get(int(directory.name)) if directory.name.isdecimal() else None
            if firsts is None:
                rmtree(directory, ignore_errors=True)
                continue
            for path in _listed(directory):
                first = path.name.split(".")[0]
                if path.name.endswith(UNFINISHED) or not first.isdecimal() or int(first) not in firsts:
                    path.unlink(missing_ok=True)

    def link_into(self, target: "SegmentFiles") -> None:
        """Give each segment's file a second name below another directory, or copy it where that is not possible."""
        self._repeat_in(target, _link)

    def copy_into(self, target: "SegmentFiles") -> None:
        """Copy each segment's file, synced, that is not below the other directory yet."""
        self._repeat_in(target, _copy)

    def _repeat_in(self, target: "SegmentFiles", repeat: Callable[[Path, Path], None]) -> None:
        for directory in _listed(self.directory):
            for path in _listed(directory):  # nothing, if the stream was deleted meanwhile
                copy = target.directory / directory.name / path.name
                if path.suffix == ".chunks" and not copy.exists():
                    _make_directories(copy.parent)
                    with suppress(FileNotFoundError):  # truncated meanwhile
                        repeat(path, copy)


def write_file(path: Path, pieces: Iterable[bytes]) -> None:
    """Write a file that is there whole and synced, or not at all. :raises OSError: when it is not."""
    _make_directories(path.parent)
    unfinished = path.with_name(path.name + UNFINISHED)
    try:
        with open(unfinished, "wb", opener=_private) as file:
            unsynced = 0
            for piece in pieces:
                file.write(piece)
                unsynced += len(piece)
                if unsynced >= _SYNC_SIZE:
                    file.flush()
                    os.fdatasync(file.fileno())
                    unsynced = 0
            file.flush()
            os.fsync(file.fileno())
        unfinished.rename(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    sync_directories(path.parent)
    sync_directories(path.parent.parent)


def _make_directories(directory: Path) -> None:
    """Make the directory of a stream and the one above it, for this user alone."""
    for each in (directory.parent, directory):
        each.mkdir(mode=0o700, exist_ok=True)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, 0o600)


def _listed(directory: Path) -> list[Path]:
    """Return what is in a directory; nothing, when it is not there."""
    try:
        return list(directory.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def _link(path: Path, copy: Path) -> None:
    try:
        os.link(path, copy)
    except OSError as error:
        if error.errno not in (EXDEV, EPERM, EMLINK, ENOTSUP):
            raise
        _copy(path, copy)


def _copy(path: Path, copy: Path) -> None:
    with path.open("rb") as source:
        write_file(copy, iter(lambda: source.read(_COPY_SIZE), b""))
