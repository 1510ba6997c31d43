"""Backup: a copy of a store, made by another process than the one that writes it.

LMDB lets any process read one committed state while the owner continues to write. The copy equals the state after a
crash at that moment, so it contains everything confirmed before the backup began. Stream files are copied before and
after the data, because the owner may move segments into files meanwhile. It may also remove such a file before it is
copied: then the data, which name its segment, are copied again.
"""

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

import lmdb

from gateway.kernel.errors import StorageError
from gateway_lmdb import redo_log
from gateway_lmdb.copy_lock import copying
from gateway_lmdb.disk import SYSTEM_DISK
from gateway_lmdb.environment import DEFAULT_MAP_SIZE, FILE
from gateway_lmdb.records import decode_segment
from gateway_lmdb.schema import MAX_TABLES, unpack_place
from gateway_lmdb.segment_files import DIRECTORY, SegmentFiles

#: Copies of the data until all segments that they name have their files.
_ATTEMPTS: Final = 10


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
        for _ in range(_ATTEMPTS):
            (target / FILE).unlink(missing_ok=True)
            segments.copy_into(copies)
            with (
                copying(source),
                lmdb.open(str(source), map_size=DEFAULT_MAP_SIZE, readonly=True, readahead=False) as environment,
            ):
                redo_log.copy(source, target, SYSTEM_DISK)
                environment.copy(str(target), compact=True)
            segments.copy_into(copies)
            lost = _lost_segment(target, copies)
            if lost is None:
                break
        else:
            raise OSError(f"segments are removed faster than they are copied: {lost}")
        _make_durable(target)
    except (OSError, lmdb.Error) as error:
        with suppress(OSError):  # an incomplete copy must not look like a store
            (target / FILE).unlink()
        raise StorageError(f"the store in {source} cannot be copied to {target}: {error}") from error
    return sum(path.stat().st_size for path in target.rglob("*") if path.is_file())


def _lost_segment(target: Path, files: SegmentFiles) -> Path | None:
    """Return the file of a segment that is missing behind another one of its stream, as a start would find it."""
    with lmdb.open(
        str(target), map_size=DEFAULT_MAP_SIZE, readonly=True, lock=False, max_dbs=MAX_TABLES
    ) as environment:
        try:
            table = environment.open_db(b"segments", create=False)
        except lmdb.NotFoundError:
            return None  # of a store that never had a stream
        begun = None
        with environment.begin() as transaction, transaction.cursor(table) as cursor:
            for key, record in cursor:
                try:
                    stream_id, first = unpack_place(key)
                    _, is_filed = decode_segment(stream_id, first, record)
                except StorageError:
                    continue  # damaged, or of a newer gateway: copied as it is, and judged by a start
                if not is_filed or files.exists(stream_id, first):
                    begun = stream_id
                elif begun == stream_id:
                    return files.path(stream_id, first)
    return None


def _make_durable(target: Path) -> None:
    """Sync the copy, which LMDB leaves to the system, and its new directory entries."""
    with (target / FILE).open("rb") as file:
        os.fchmod(file.fileno(), 0o600)
        os.fsync(file.fileno())
    SYSTEM_DISK.sync_directories(target)
