"""Files that are written atomically, so that a crash leaves either the whole file or none."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

TEMPORARY: Final = ".tmp"
"""Suffix of the temporary name of a file being written. The name begins with a dot, so that readers ignore it."""


@contextmanager
def replaced(path: Path, *, is_synced: bool = True) -> Iterator[BinaryIO]:
    """Open a file for writing; at the end of the block it is synced and renamed, unless an error was raised.

    The temporary name includes the process id, so that a process that takes over from a dying one uses another
    file. Without ``is_synced`` a loss of power may leave a part of the file.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}{TEMPORARY}")
    try:
        with temporary.open("wb") as file:
            yield file
            if is_synced:
                file.flush()
                os.fsync(file.fileno())
        temporary.rename(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    if is_synced:
        sync_directory(path.parent)


def sync_directory(directory: Path) -> None:
    """Sync a directory, so that its entries survive a loss of power."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_directory(directory: Path) -> None:
    """Create a directory and its missing parents, so that they survive a loss of power."""
    if directory.is_dir():
        return
    make_directory(directory.parent)
    directory.mkdir(exist_ok=True)
    sync_directory(directory.parent)
