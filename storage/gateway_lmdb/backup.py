"""A copy of a store for safe keeping, made by another process than the one that writes it.

LMDB lets any process read one committed state while the owner goes on writing: the copy is what a crash at that moment
would leave, so everything confirmed before it began is in it. The files of streams are copied before and after: what
the owner moves into one meanwhile is in the one or the other.
"""

import os
from contextlib import suppress
from pathlib import Path

import lmdb

from gateway.kernel.errors import StorageError
from gateway_lmdb.copy_lock import copying
from gateway_lmdb.environment import DEFAULT_MAP_SIZE, FILE, sync_directories
from gateway_lmdb.segment_files import DIRECTORY, SegmentFiles


def back_up(source: Path, target: Path) -> int:
    """Write a compact copy of the store in ``source`` into ``target``; return its size in bytes.

    ``target`` becomes a data directory a gateway can be started on. It is made, or must be empty.

    :raises StorageError: when there is no store, ``target`` is not empty, or a file cannot be read or written.
    """
    if not (source / FILE).is_file():
        raise StorageError(f"there is no store in {source}")
    try:
        target.mkdir(mode=0o700, parents=True, exist_ok=True)
        if any(target.iterdir()):
            raise StorageError(f"{target} is not empty")
        target.chmod(0o700)
        segments, copies = SegmentFiles(source / DIRECTORY), SegmentFiles(target / DIRECTORY)
        segments.copy_into(copies)
        with (
            copying(source),
            lmdb.open(str(source), map_size=DEFAULT_MAP_SIZE, readonly=True, readahead=False) as environment,
        ):
            environment.copy(str(target), compact=True)
        segments.copy_into(copies)
        _make_durable(target)
    except (OSError, lmdb.Error) as error:
        with suppress(OSError):  # half a copy must not pass for one
            (target / FILE).unlink()
        raise StorageError(f"the store in {source} cannot be copied to {target}: {error}") from error
    return sum(path.stat().st_size for path in target.rglob("*") if path.is_file())


def _make_durable(target: Path) -> None:
    """Sync the copy, which LMDB leaves to the system, and the names of what is new."""
    with (target / FILE).open("rb") as file:
        os.fchmod(file.fileno(), 0o600)
        os.fsync(file.fileno())
    sync_directories(target)
