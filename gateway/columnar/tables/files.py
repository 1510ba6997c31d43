"""Files that are there whole or not at all, whenever the process or the machine dies."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

TEMPORARY: Final = ".tmp"
"""How the name of a file ends that is being written. It begins with a dot, so that nobody takes it for data."""


@contextmanager
def replaced(path: Path) -> Iterator[BinaryIO]:
    """Open a file to be written; it gets its name, and is on disk, when the block ends without an error.

    The temporary name is this process's own: one that takes over from a dying one never writes to the same file.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}{TEMPORARY}")
    try:
        with temporary.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    sync_directory(path.parent)


def sync_directory(directory: Path) -> None:
    """Make the names in a directory survive a loss of power."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_directory(directory: Path) -> None:
    """Make a directory and those above it that are missing, so that they survive a loss of power."""
    if directory.is_dir():
        return
    make_directory(directory.parent)
    directory.mkdir(exist_ok=True)
    sync_directory(directory.parent)
