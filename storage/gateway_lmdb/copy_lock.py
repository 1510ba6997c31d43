"""Who copies a store and who changes its file do not meet: copies share a lock, a change of the file has it alone."""

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
    """Keep the file of a store what it is for as long as the block lasts."""
    with _held(directory, fcntl.LOCK_SH):
        yield


@contextmanager
def changing(directory: Path) -> Iterator[bool]:
    """Keep others from copying the store; yields ``False`` when somebody does."""
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
        yield  # nobody can change what is there
        return
    try:
        fcntl.flock(descriptor, operation)
        yield
    finally:
        os.close(descriptor)
