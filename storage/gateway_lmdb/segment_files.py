"""Files of sealed stream segments.

``streams/<stream id>/<first offset, 20 digits>.chunks`` contains the chunks of one segment, concatenated. It never
changes; it gets its name when it is complete and synced. Files beside it with the same number (``.arrow``) belong to it
and are removed with it. Those with another number after it (``.7.arrow``) are of use only until the store is closed,
and are removed when it is opened again; names that end in ``.tmp`` are unfinished files.
"""

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from errno import EMLINK, ENOTSUP, EPERM, EXDEV
from pathlib import Path
from typing import Final

from gateway.kernel.errors import StorageError
from gateway.kernel.messages.chunks import HEAD_SIZE, read_head
from gateway_lmdb.disk import SYSTEM_DISK, Disk, OpenFile

#: The directory beside the store's own files.
DIRECTORY: Final = "streams"

#: The suffix of an unfinished file.
UNFINISHED: Final = ".tmp"

#: The bytes written before each sync: syncing a whole segment at once would delay the next commit.
_SYNC_SIZE: Final = 4 * 1024 * 1024

#: The bytes copied at a time.
_COPY_SIZE: Final = 1024 * 1024

#: The maximum number of files open for reading.
_MOST_OPEN: Final = 32


class SegmentFile:
    """One file, open for reading, with an index of its chunks."""

    def __init__(self, file: OpenFile) -> None:
        self._file = file
        self._firsts = array("Q")
        self._positions = array("Q")
        position = 0
        while position < file.size:
            head = read_head(file.read(HEAD_SIZE, position))
            self._firsts.append(head.first)
            self._positions.append(position)
            position += head.size
        self._positions.append(position)

    def read(self, offset: int, most_bytes: int) -> bytes:
        """Return consecutive chunks, starting with that of ``offset``, up to ``most_bytes`` but at least one."""
        place = bisect_right(self._firsts, offset) - 1
        begin = self._positions[place]
        last = bisect_right(self._positions, begin + most_bytes) - 1
        end = self._positions[max(last, place + 1)]
        return self._file.read(end - begin, begin)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class SegmentFiles:
    """The files below one directory. Read on the kernel's thread only, written on the sealer's."""

    def __init__(self, directory: Path, disk: Disk = SYSTEM_DISK) -> None:
        self.directory = directory
        self._disk = disk
        self._open: dict[Path, SegmentFile] = {}

    def path(self, stream_id: int, first: int) -> Path:
        """Return the path of a segment's file, whether or not it exists."""
        return self.directory / str(stream_id) / f"{first:020}.chunks"

    def exists(self, stream_id: int, first: int) -> bool:
        """Return whether a segment has a file."""
        return self._disk.exists(self.path(stream_id, first))

    def read(self, stream_id: int, first: int, offset: int, most_bytes: int) -> bytes | None:
        """Return chunks of the segment that starts at ``first``; ``None`` when its file was removed.

        :raises StorageError: when it cannot be read, or is damaged.
        """
        path = self.path(stream_id, first)
        try:
            return self._opened(path).read(offset, most_bytes)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StorageError(f"{path} cannot be read: {error}") from error

    def _opened(self, path: Path) -> SegmentFile:
        """Return an open file; close the least recently used one if there are too many."""
        file = self._open.pop(path, None) or SegmentFile(self._disk.open(path))
        self._open[path] = file
        if len(self._open) > _MOST_OPEN:
            self._open.pop(next(iter(self._open))).close()
        return file

    def close(self) -> None:
        """Close the open files."""
        while self._open:
            self._open.popitem()[1].close()

    def remove(self, stream_id: int, end: int) -> None:
        """Remove the files of every segment of a stream that starts below ``end``."""
        for path in self._disk.listed(self.directory / str(stream_id)):
            first = path.name.split(".")[0]
            if first.isdecimal() and int(first) < end:
                self._disk.remove(path)

    def remove_stream(self, stream_id: int) -> None:
        """Remove every file of a stream."""
        self._disk.remove_tree(self.directory / str(stream_id))

    def clean(self, firsts_by_stream: "dict[int, set[int]]") -> None:
        """Remove every file that belongs to none of these segments, unfinished files, and those of the former run."""
        for directory in self._disk.listed(self.directory):
            firsts = firsts_by_stream.get(int(directory.name)) if directory.name.isdecimal() else None
            if firsts is None:
                self._disk.remove_tree(directory)
                continue
            for path in self._disk.listed(directory):
                first, *suffixes = path.name.split(".")
                is_left_over = path.name.endswith(UNFINISHED) or len(suffixes) > 1
                if is_left_over or not first.isdecimal() or int(first) not in firsts:
                    self._disk.remove(path)

    def link_into(self, target: "SegmentFiles") -> None:
        """Link each segment's file into another directory, or copy it where links are not possible."""
        self._repeat_in(target, target._link)

    def copy_into(self, target: "SegmentFiles") -> None:
        """Copy each segment's file that is not in the other directory yet, and sync it."""
        self._repeat_in(target, target._copy)

    def _repeat_in(self, target: "SegmentFiles", repeat: Callable[[Path, Path], None]) -> None:
        for directory in self._disk.listed(self.directory):
            for path in self._disk.listed(directory):  # empty if the stream was deleted meanwhile
                copy = target.directory / directory.name / path.name
                if path.suffix == ".chunks" and not self._disk.exists(copy):
                    target._make_directories(copy.parent)
                    with suppress(FileNotFoundError):  # truncated meanwhile
                        repeat(path, copy)

    def write(self, path: Path, pieces: Iterable[bytes]) -> None:
        """Write a file completely and sync it, or leave none. :raises OSError: when it cannot be written."""
        disk = self._disk
        self._make_directories(path.parent)
        unfinished = path.with_name(path.name + UNFINISHED)
        try:
            with closing(disk.create(unfinished)) as file:
                unsynced = 0
                for piece in pieces:
                    file.write(piece)
                    unsynced += len(piece)
                    if unsynced >= _SYNC_SIZE:
                        file.sync()
                        unsynced = 0
                file.sync()
            disk.rename(unfinished, path)
        except BaseException:
            disk.remove(unfinished)
            raise
        disk.sync_directories(path.parent)
        disk.sync_directories(path.parent.parent)

    def _make_directories(self, directory: Path) -> None:
        """Create the directory of a stream and its parent."""
        for each in (directory.parent, directory):
            self._disk.make_directory(each)

    def _link(self, path: Path, copy: Path) -> None:
        try:
            self._disk.link(path, copy)
        except OSError as error:
            if error.errno not in (EXDEV, EPERM, EMLINK, ENOTSUP):
                raise
            self._copy(path, copy)

    def _copy(self, path: Path, copy: Path) -> None:
        with closing(self._disk.open(path)) as source:
            self.write(copy, (source.read(_COPY_SIZE, at) for at in range(0, source.size, _COPY_SIZE)))
