"""A lock between copying a store and replacing its file: copies share it, a replacement holds it exclusively."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from errno import EROFS
from pathlib import Path
from typing import Final

_NAME: Final = "copy.lock"


@contextmanager
def copying(directory: Path) -> Iterator[None]:
    """Prevent the replacement of a store's file during the block."""
    with _held(directory, fcntl.LOCK_SH):
        yield


@contextmanager
def changing(directory: Path) -> Iterator[bool]:
    """Prevent copies of the store during the block; yield ``False`` when one is in progress."""
    try:
        with _held(directory, fcntl.LOCK_EX | fcntl.LOCK_NB):
            yield True
    except BlockingIOError:
        yield False


@contextmanager
def _held(directory: Path, operation: int) -> Iterator[None]:
    try:
        descriptor = os.open(directory / _NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno != EROFS:
            raise
        yield  # on a read-only file system no lock is needed
        return
    try:
        fcntl.flock(descriptor, operation)
        yield
    finally:
        os.close(descriptor)
