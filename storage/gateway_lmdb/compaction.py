"""Compaction of ``data.mdb`` while the store is in use.

Another process writes a compact copy of one committed state. Batches committed meanwhile are kept in memory and written
to the copy, first on the compaction's thread and, when few are left, on the writer's. Between two commits both files
then have the same content, and one rename replaces the file with the copy. A crash leaves one complete file; the
directory of an unfinished copy is removed at the next start.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

import lmdb

from gateway.kernel.errors import StorageError
from gateway_lmdb.batch import Batch, Written
from gateway_lmdb.batch_writer import BatchWriter
from gateway_lmdb.bursts import NoBursts
from gateway_lmdb.disk import Disk
from gateway_lmdb.environment import DEFAULT_MAP_SIZE, FILE, Environment
from gateway_lmdb.schema import MAX_TABLES, open_tables
from gateway_lmdb.threads import Thread

#: The directory of an unfinished copy, beside the file it will replace.
DIRECTORY: Final = "compacting"

#: The limit on batches kept in memory meanwhile, in bytes; beyond it the compaction fails.
MOST_PENDING: Final = 128 * 2**20

#: The writer takes over when less than this is left to write, in bytes: some milliseconds of work.
_LITTLE: Final = 512 * 2**10

#: The approximate size of a change besides a body, in bytes.
_CHANGE_SIZE: Final = 256

#: Disk space that must stay free, in bytes.
_ROOM: Final = 64 * 2**20

_POLL_S: Final = 0.05

State = Literal["asked", "copying", "catching up", "done", "failed"]


@dataclass(frozen=True, slots=True)
class CompactionProgress:
    """The progress of a compaction: ``copied`` bytes of about ``of``; file size ``before`` and ``after``."""

    state: State
    copied: int = 0
    of: int = 0
    before: int = 0
    after: int = 0
    seconds: float = 0.0
    reason: str = ""

    @property
    def is_over(self) -> bool:
        """Whether the compaction has ended."""
        return self.state in ("done", "failed")


class Compaction:
    """One compaction. The writer calls ``committed``; ``progress`` may be read on any thread.

    :param wake: makes the writer run once more; called on any thread.
    :param report: called with each new state, on any thread.
    """

    def __init__(
        self, environment: Environment, wake: Callable[[], None], report: Callable[[CompactionProgress], None]
    ) -> None:
        self._environment = environment
        self._disk = environment.disk
        self._threads = environment.threads
        self._wake = wake
        self._report = report
        self._directory = environment.path / DIRECTORY
        self._lock = self._threads.lock()
        self._pending: list[Batch] = []
        self._pending_bytes = 0
        self._cancelled = self._threads.event()
        self._copy: _Copy | None = None
        self._began_s = 0.0
        self._thread: Thread | None = None
        self.progress = CompactionProgress("asked")

    def committed(self, batch: Batch) -> bool:
        """Start, keep the committed batch, or replace the file; return ``True`` once the compaction has ended.

        :raises StorageError: when the store cannot be used any more.
        """
        if self.progress.state == "asked":
            self._begin()
        elif not self.progress.is_over:
            self._add_pending(batch)
            if self._copy is not None:
                self._replace_file(self._copy)
        return self.progress.is_over

    def cancel(self) -> None:
        """Cancel and wait until everything is cleaned up; called after the writer has ended."""
        self._cancelled.set()
        if self._thread is not None:
            self._thread.join()
        if self._copy is not None:
            self._copy.close()
        if not self.progress.is_over:
            self._fail("cancelled")

    # On the writer's thread

    def _begin(self) -> None:
        usage = self._environment.usage()
        self._began_s = self._threads.monotonic_s()
        self._set(CompactionProgress("copying", 0, usage.used_bytes, usage.file_bytes))
        free = self._disk.free_bytes(self._environment.path)
        if free < usage.used_bytes + _ROOM:
            self._fail(f"{usage.used_bytes + _ROOM} bytes of free disk space are needed, {free} are available")
            return
        self._thread = self._threads.start(self._work, "store-compaction")

    def _add_pending(self, batch: Batch) -> None:
        if not len(batch):
            return
        with self._lock:
            self._pending.append(batch)
            self._pending_bytes += _size(batch)
        if self._pending_bytes > MOST_PENDING:
            self._cancelled.set()

    def _replace_file(self, copy: "_Copy") -> None:
        """Write the remaining batches to the copy, and replace the file with it."""
        with self._disk.changing(self._environment.path) as may_change:
            if not may_change:  # a backup reads the file: try again later
                self._call_later()
                return
            try:
                copy.write(self._take_pending())
                after = copy.finish()
                self._environment.replace_file(self._directory / FILE)
            except (OSError, lmdb.Error) as error:
                self._copy = None
                self._fail(str(error))
                return
        self._copy = None
        self._remove()
        seconds = self._threads.monotonic_s() - self._began_s
        self._set(replace(self.progress, state="done", after=after, seconds=seconds))

    def _call_later(self) -> None:
        def later() -> None:
            if not self._cancelled.wait(_POLL_S):
                self._wake()

        self._threads.start(later, "store-compaction-wait")

    # On its own thread

    def _work(self) -> None:
        copy: _Copy | None = None
        try:
            self._run_copy()
            self._set(replace(self.progress, state="catching up"))
            copy = _Copy(self._directory, self._disk)
            while not self._cancelled.is_set():
                copy.write(self._take_pending())
                if self._pending_bytes < _LITTLE:
                    copy.sync()
                    self._copy = copy
                    self._wake()
                    return
            raise StorageError("cancelled" if self._pending_bytes <= MOST_PENDING else _TOO_BUSY)
        except (OSError, lmdb.Error, StorageError) as error:
            if copy is not None:
                copy.close()
            self._fail(str(error))
            self._wake()

    def _run_copy(self) -> None:
        self._remove()
        self._disk.make_directory(self._directory)
        self._disk.copy_lmdb(self._environment.path, self._directory, self._cancelled.wait, self._copied)
        if self._cancelled.is_set():
            raise StorageError(_TOO_BUSY if self._pending_bytes > MOST_PENDING else "cancelled")

    def _copied(self, size: int) -> None:
        self.progress = replace(self.progress, copied=size)

    def _take_pending(self) -> list[Batch]:
        with self._lock:
            taken, self._pending, self._pending_bytes = self._pending, [], 0
        return taken

    # Ending

    def _fail(self, reason: str) -> None:
        self._pending = []
        self._remove()
        seconds = self._threads.monotonic_s() - self._began_s if self._began_s else 0.0
        self._set(replace(self.progress, state="failed", reason=reason, seconds=seconds))

    def _remove(self) -> None:
        self._disk.remove_tree(self._directory)

    def _set(self, progress: CompactionProgress) -> None:
        self.progress = progress
        self._report(progress)


_TOO_BUSY: Final = f"more than {MOST_PENDING} bytes were written meanwhile: try again when the load is lower"


class _Copy:
    """The copy, open for writing later batches. Not durable before ``sync`` or ``finish``."""

    def __init__(self, directory: Path, disk: Disk) -> None:
        self._file = directory / FILE
        self._disk = disk
        self._lmdb = disk.open_lmdb(
            directory, map_size=DEFAULT_MAP_SIZE, max_dbs=MAX_TABLES, mode=0o600, sync=False, readahead=False
        )
        self._writer = BatchWriter(open_tables(self._lmdb), NoBursts(), rises=False)

    def write(self, batches: list[Batch]) -> None:
        """Write batches, which the copy may already contain."""
        for batch in batches:
            with self._lmdb.begin(write=True) as transaction:
                self._writer.write(transaction, batch)
            self._writer.committed()

    def sync(self) -> None:
        """Sync the file to disk."""
        self._lmdb.sync(True)

    def finish(self) -> int:
        """Sync and close the file; return its size."""
        self.sync()
        self.close()
        return self._disk.size(self._file)

    def close(self) -> None:
        """Close the file."""
        self._lmdb.close()


def compact_closed(environment: Environment, show: Callable[[int, int], None]) -> tuple[int, int]:
    """Compact a store that no other process uses; return the size of the file before and after.

    :raises StorageError: when it cannot be copied.
    """
    monotonic_s = environment.threads.monotonic_s
    shown = 0.0

    def show_progress(progress: CompactionProgress) -> None:
        nonlocal shown
        if progress.state == "copying" and monotonic_s() - shown >= 1:
            shown = monotonic_s()
            show(progress.copied, progress.of)

    nothing = Batch(Written(0, 0, 0))
    woken = environment.threads.event()
    compaction = Compaction(environment, woken.set, show_progress)
    while not compaction.committed(nothing):
        woken.wait(_POLL_S)
        woken.clear()
        show_progress(compaction.progress)
    if compaction.progress.state == "failed":
        raise StorageError(f"the store in {environment.path} cannot be compacted: {compaction.progress.reason}")
    return compaction.progress.before, compaction.progress.after


def remove_unfinished(path: Path, disk: Disk) -> None:
    """Remove the copy of an unfinished compaction."""
    disk.remove_tree(path / DIRECTORY)


def _size(batch: Batch) -> int:
    return batch.size + len(batch) * _CHANGE_SIZE
