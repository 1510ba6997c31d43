"""A disk that is never synced, for copies that are built anew after each loss."""

from pathlib import Path
from typing import Any, BinaryIO

import lmdb

from gateway_lmdb.disk import NewFile, SystemDisk, private


class UnsyncedDisk(SystemDisk):
    """The disk of the system without a single sync: after a crash nothing on it can be trusted."""

    is_synced = False

    def require_whole(self, file: Path) -> None:
        """Do nothing: this process has just written the file."""

    def open_lmdb(self, path: Path, **options: Any) -> lmdb.Environment:  # Any: as in ``Disk``
        """Open the LMDB environment in a directory; its commits are not synced."""
        return lmdb.open(str(path), sync=False, metasync=False, **options)

    def sync_directories(self, path: Path) -> None:
        """Do nothing."""

    def create(self, path: Path) -> NewFile:
        """Create an empty file for this user only; its ``sync`` empties the buffer."""
        return _UnsyncedFile(open(path, "wb", opener=private))


class _UnsyncedFile:
    """A buffered file."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, data: bytes) -> None:
        """Append data to the buffer."""
        self._file.write(data)

    def sync(self) -> None:
        """Write the buffered content."""
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()
