"""Staged rows on disk: a directory for each attempt, a file for each part, each complete and checked.

A part is ``GWSTAGE1``, the CRC-32 of all that follows, the lengths of its owner and of its rows, its owner in JSON
(``[virtual host, user, attempt]``), then its rows as they were sent. It is synced under a temporary name and renamed,
so a file with the name of a part is whole; the checksum finds what the disk has damaged later. All methods block.
"""

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from struct import Struct
from typing import BinaryIO, Final, NamedTuple
from zlib import crc32

_MAGIC: Final = b"GWSTAGE1"

#: Magic number, checksum, length of the owner, length of the rows.
_HEAD: Final = Struct(">8sIIQ")

#: Length of what the checksum does not cover.
_UNCOVERED: Final = 12

_SUFFIX: Final = ".part"

#: The longest owner that is read: names have at most 255 characters.
_LONGEST_OWNER: Final = 16_384


class AttemptKey(NamedTuple):
    """An attempt: its virtual host, its user, its name."""

    vhost: str
    user: str
    name: str


class StoredPart(NamedTuple):
    """A part that a start has found: its attempt, its number, the size of its rows, its age in seconds."""

    key: AttemptKey
    number: int
    size: int
    age_s: float


class PartUnusable(Exception):
    """A part cannot be read: the file is missing or damaged. The text names it."""


class NoDiskSpace(Exception):
    """A part was not written because the disk would have too little free space."""


class StagedFiles:
    """The files below ``directory``, which is created with the first part.

    ``least_free`` returns the free space in bytes that a part must leave on the disk.
    """

    def __init__(self, directory: Path, least_free: Callable[[], int] = lambda: 0) -> None:
        self._directory = directory
        self._least_free = least_free

    def write(self, key: AttemptKey, number: int, rows: bytes) -> None:
        """Write a part durably, in place of an earlier one with this number.

        :raises NoDiskSpace: if the disk would have less free space than it must.
        :raises OSError: if the disk refuses it.
        """
        directory = self._directory_of(key)
        if not directory.is_dir():
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            _sync_directory(self._directory)
        free = shutil.disk_usage(directory).free
        if free - len(rows) < self._least_free():
            raise NoDiskSpace(f"the disk has {free} bytes free")
        owner = json.dumps(key).encode()
        covered = _HEAD.pack(_MAGIC, 0, len(owner), len(rows))[_UNCOVERED:] + owner
        head = _MAGIC + crc32(rows, crc32(covered)).to_bytes(4, "big") + covered
        temporary = directory / f"{number}.new"
        try:
            with temporary.open("wb", buffering=0) as file:
                _write_all(file.fileno(), head)
                _write_all(file.fileno(), rows)
                os.fsync(file.fileno())
            temporary.rename(directory / f"{number}{_SUFFIX}")
        except OSError:
            temporary.unlink(missing_ok=True)
            raise
        _sync_directory(directory)

    def read(self, key: AttemptKey, number: int) -> bytes:
        """Return the rows of a part. :raises PartUnusable: if it is missing or damaged."""
        path = self._directory_of(key) / f"{number}{_SUFFIX}"
        try:
            with path.open("rb") as file:
                rows = _rows_in(file)
        except OSError as error:
            raise PartUnusable(f"part {number} of attempt '{key.name}' cannot be read: {error.strerror}") from None
        if rows is None:
            raise PartUnusable(f"part {number} of attempt '{key.name}' is damaged: {path}")
        return rows

    def remove_part(self, key: AttemptKey, number: int) -> None:
        """Remove a part, if it exists."""
        (self._directory_of(key) / f"{number}{_SUFFIX}").unlink(missing_ok=True)

    def remove(self, key: AttemptKey) -> None:
        """Remove an attempt, if it exists."""
        shutil.rmtree(self._directory_of(key), ignore_errors=True)

    def found(self) -> Iterator[StoredPart]:
        """Yield the parts on the disk; remove what a crash has left of others."""
        if not self._directory.is_dir():
            return
        for directory in sorted(self._directory.iterdir()):
            parts = list(self._parts_of(directory))
            if not parts:
                shutil.rmtree(directory, ignore_errors=True)
            yield from parts

    def _parts_of(self, directory: Path) -> Iterator[StoredPart]:
        key: AttemptKey | None = None
        now_s = time.time()
        for path in sorted(directory.iterdir()) if directory.is_dir() else ():
            if path.suffix != _SUFFIX or not path.stem.isdigit():
                with suppress(OSError):
                    path.unlink()
                continue
            if key is None:
                key = _owner_of(path)
            if key is None or self._directory_of(key) != directory:
                continue
            state = path.stat()
            size = state.st_size - _HEAD.size - len(json.dumps(key).encode())
            yield StoredPart(key, int(path.stem), max(0, size), max(0.0, now_s - state.st_mtime))

    def _directory_of(self, key: AttemptKey) -> Path:
        return self._directory / sha256(json.dumps(key).encode()).hexdigest()[:32]


def _owner_of(path: Path) -> AttemptKey | None:
    """Return the owner in the head of a part; ``None`` if it cannot be read."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD.size)
            length, _ = _lengths(head)
            vhost, user, name = json.loads(file.read(min(length, _LONGEST_OWNER)))
    except (OSError, ValueError, TypeError):
        return None
    return AttemptKey(str(vhost), str(user), str(name))


def _rows_in(file: BinaryIO) -> bytes | None:
    """Return the rows of a part; ``None`` if it is damaged. They are not copied: that would hold up other threads."""
    head = file.read(_HEAD.size)
    owner_size, size = _lengths(head)
    if os.fstat(file.fileno()).st_size != _HEAD.size + owner_size + size:
        return None
    owner = file.read(owner_size)
    rows = file.read(size)
    checksum = crc32(rows, crc32(owner, crc32(head[_UNCOVERED:])))
    return rows if checksum == int.from_bytes(head[8:_UNCOVERED], "big") else None


def _lengths(content: bytes) -> tuple[int, int]:
    """Return the lengths of owner and rows; zeros if the content is no part."""
    if len(content) < _HEAD.size:
        return 0, 0
    magic, _, owner, rows = _HEAD.unpack_from(content)
    return (owner, rows) if magic == _MAGIC else (0, 0)


def _write_all(descriptor: int, content: bytes) -> None:
    left = memoryview(content)
    while left:
        left = left[os.write(descriptor, left) :]


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
