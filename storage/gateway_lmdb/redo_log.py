"""The redo log: small batches become durable in it with one sync, and reach the tables later.

A commit of LMDB syncs twice, the pages and then the root. A record of the redo log is written over bytes that the file
has already, so one sync of its content is enough, and no other write.

The file has a fixed size and is written from its start in each *era*. An era begins with a commit of LMDB, which
contains all earlier changes and the number of the era. So records of another era have no meaning, and need not be
erased. Records of one era are numbered from 0; the first one that is missing, or whose checksum is wrong, is the end.

A start applies the records of the current era before anything else reads the tables.
"""

import secrets
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from struct import Struct
from typing import TYPE_CHECKING, Final
from zlib import crc32

from gateway.kernel.messages.contents import ContentWriter
from gateway_lmdb.batch import Batch
from gateway_lmdb.redo_records import encode_batch

if TYPE_CHECKING:
    from gateway_lmdb.disk import Disk, LogFile

#: The name of the file in the directory of the store.
FILE: Final = "redo.log"

#: The size of the file, in bytes.
SIZE: Final = 2 * 1024 * 1024

#: Limits of a batch that is written to the redo log: bytes of its bodies, and changes. For larger ones the second sync
#: is a small part of the costs, and they would be written twice.
MOST_BYTES: Final = 64 * 1024
MOST_CHANGES: Final = 512

#: Room that the tables must have, in bytes: all that the file can hold becomes pages of LMDB, and other programs fill
#: the disk, too.
ROOM: Final = 32 * SIZE

#: The time after which the changes of the redo log are written to the tables, in seconds. What comes and goes in it is
#: never written there.
WINDOW_S: Final = 0.25

#: Marks a record, and the version of its layout.
_MARK: Final = b"GWR1"

#: Mark, era, number of the record in its era, size of the payload; then the checksum of these and of the payload.
_HEAD: Final = Struct(">4sQII")
_CHECKSUM: Final = Struct(">I")
_AROUND: Final = _HEAD.size + _CHECKSUM.size

_ERA_BITS: Final = 62


class RedoLog:
    """The redo log of an open store. Used on the writer's thread.

    Records can be written once an era has begun: ``next_era`` gives the number that the next commit of LMDB stores, and
    ``begin`` is called after that commit.
    """

    def __init__(self, path: Path, disk: "Disk") -> None:
        self._path = path
        self._disk = disk
        self._encode_content = ContentWriter().encode
        self._file: LogFile | None = None
        self._has_failed = False
        self._era = 0
        self._next_era = 1 + secrets.randbits(_ERA_BITS)
        self._number = 0
        self._end = 0

    @property
    def next_era(self) -> int:
        """The number of the era that begins with the next commit of LMDB."""
        return self._next_era

    def begin(self, era: int, *, has_room: bool) -> None:
        """Begin an era: LMDB has committed its number, and all changes so far.

        :param has_room: whether the tables have room for all that the log could take. Without it nothing is written to
        the log: what was confirmed must not wait for space.
        """
        self._next_era = era + 1
        self._number = self._end = 0
        if self._file is None and has_room and not self._has_failed:
            try:
                self._file = self._disk.open_log(self._path / FILE, SIZE)
            except OSError:  # without it each batch is a commit of LMDB
                self._has_failed = True
        self._era = era if self._file is not None and has_room else 0

    def takes(self, batch: Batch) -> bool:
        """Return whether a batch is small enough, and consists of changes that the log can hold."""
        return (
            self._era > 0
            and batch.size <= MOST_BYTES
            and len(batch) <= MOST_CHANGES
            and not len(batch.streams)
            and not batch.asides
        )

    def append(self, batch: Batch) -> bool:
        """Write a batch that it ``takes``, durably; return ``False`` without room, or if that fails."""
        file = self._file
        if file is None:
            return False
        try:
            payload = encode_batch(batch, self._encode_content)
        except Exception:  # a commit of LMDB finds out which change cannot be encoded, and leaves it out
            return False
        if not payload:
            return True
        head = _HEAD.pack(_MARK, self._era, self._number, len(payload))
        record = b"".join((head, _CHECKSUM.pack(crc32(payload, crc32(head))), payload))
        if self._end + len(record) > SIZE:
            return False
        try:
            file.write(record, self._end)
        except OSError:  # it may be there in part, or not durable: the next commit ends its era
            self._close()
            return False
        self._number += 1
        self._end += len(record)
        return True

    @property
    def is_nearly_full(self) -> bool:
        """Whether the largest batches have no room any more."""
        return self._end + 2 * MOST_BYTES > SIZE

    def _close(self) -> None:
        self._has_failed = True
        self._era = 0
        self.close()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
            self._file = None


def records_of(data: bytes, era: int) -> Iterator[bytes]:
    """Yield the payloads of the records of an era in the content of a redo log."""
    position = 0
    number = 0
    while len(data) - position >= _AROUND:
        mark, of_era, of_number, size = _HEAD.unpack_from(data, position)
        start = position + _AROUND
        if (mark, of_era, of_number) != (_MARK, era, number) or start + size > len(data):
            return
        (checksum,) = _CHECKSUM.unpack_from(data, position + _HEAD.size)
        payload = data[start : start + size]
        if checksum != crc32(payload, crc32(data[position : position + _HEAD.size])):
            return
        yield payload
        position = start + size
        number += 1


def content_of(directory: Path, disk: "Disk") -> bytes:
    """Return the content of the redo log in a directory, empty without one."""
    path = directory / FILE
    if not disk.exists(path):
        return b""
    file = disk.open(path)
    try:
        return file.read(SIZE, 0)
    finally:
        file.close()


def copy(directory: Path, target: Path, disk: "Disk") -> None:
    """Copy the redo log of a store that may be in use into the directory of a copy, if there is one.

    Done before LMDB's file is copied: then that file contains the records, or is of the same era. A record that is
    being written may be copied in part, and is not confirmed yet.
    """
    content = content_of(directory, disk)
    if not content:
        return
    file = disk.create(target / FILE)
    try:
        file.write(content)
        file.sync()
    finally:
        file.close()
