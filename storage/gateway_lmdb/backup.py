"""Backup: a copy of a store, made by another process than the one that writes it.

LMDB lets any process read one committed state while the owner continues to write. The copy equals the state after a
crash at that moment, so it contains everything confirmed before the backup began. Stream files are copied before and
after the data, because the owner may move segments into files meanwhile.
"""

import os
from contextlib import suppress
from pathlib import Path

import lmdb

from gateway.kernel.errors import StorageError
from gateway_lmdb import redo_log
from gateway_lmdb.copy_lock import copying
from gateway_lmdb.disk import SYSTEM_DISK
from gateway_lmdb.environment import DEFAULT_MAP_SIZE, FILE
from gateway_lmdb.segment_files import DIRECTORY, SegmentFiles


def back_up(source: Path, target: Path) -> int:
    """Write a compact copy of the store in ``source`` to ``target``; return its size in bytes.

    ``target`` becomes a data directory that a gateway can start on. It is created, or must be empty.

    :raises StorageError: when there is no store, ``target`` is not empty, or a file cannot be read or written.
    """
    if not (source / FILE).is_file():
        raise StorageError(f"there is no store in {source}: {FILE} is missing")
    try:
        target.mkdir(mode=0o700, parents=True, exist_ok=True)
        if any(target.iterdir()):
            raise StorageError(f"{target} is not empty: a backup needs a new or an empty directory")
        target.chmod(0o700)
        segments, copies = SegmentFiles(source / DIRECTORY), SegmentFiles(target / DIRECTORY)
        segments.copy_into(copies)
        with (
            copying(source),
            lmdb.open(str(source), map_size=DEFAULT_MAP_SIZE, readonly=True, readahead=False) as environment,
        ):
            redo_log.copy(source, target, SYSTEM_DISK)
            environment.copy(str(target), compact=True)
        segments.copy_into(copies)
        _make_durable(target)
    except (OSError, lmdb.Error) as error:
        with suppress(OSError):  # an incomplete copy must not look like a store
            (target / FILE).unlink()
        raise StorageError(f"the store in {source} cannot be copied to {target}: {error}") from error
    return sum(path.stat().st_size for path in target.rglob("*") if path.is_file())


def _make_durable(target: Path) -> None:
    """Sync the copy, which LMDB leaves to the system, and its new directory entries."""
    with (target / FILE).open("rb") as file:
        os.fchmod(file.fileno(), 0o600)
        os.fsync(file.fileno())
    SYSTEM_DISK.sync_directories(target)
