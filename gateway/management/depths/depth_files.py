"""The files of depths in a directory. A thread writes and reads them, so the event loop never waits for the disk."""

import sqlite3
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import closing, suppress
from itertools import pairwise
from pathlib import Path
from typing import Final

from twisted.internet.defer import Deferred

from gateway.management.depths.depth_file import DepthFile
from gateway.management.depths.depth_sample import DepthPage, DepthPlace, DepthSample
from gateway.management.disk_thread import DiskThread

#: A file that has this part of the size of all is full, if it has grown to a multiple of its first sample: the oldest
#: files are removed as a whole.
_PART: Final = 8
_GROWTH: Final = 4

#: The longest time that ``stop`` waits for the disk, in seconds.
_PATIENCE_S: Final = 2.0

_SUFFIX: Final = ".sqlite"


class DepthFiles:
    """Owns the files in ``directory``, and the thread that uses them.

    An answer is at most ``longest_ms`` older than its moment. Files are removed that are older than ``max_age_ms``, and
    the oldest ones of more than ``max_size`` bytes. ``call_in_kernel`` runs a call on the kernel's thread. ``is_full``:
    the next sample belongs to a new file.
    """

    def __init__(
        self,
        directory: Path,
        longest_ms: int,
        max_age_ms: int,
        max_size: int,
        call_in_kernel: Callable[[Callable[[], None]], object],
        pool: Executor | None = None,
    ) -> None:
        self.is_full = False
        self._directory = directory
        self._longest_ms = longest_ms
        self._max_age_ms = max_age_ms
        self._max_size = max_size
        self._thread = DiskThread("depths", call_in_kernel, pool)
        self._file: DepthFile | None = None  # of the thread
        self._full_size = 0
        self._is_used = False

    # On the kernel's thread

    def write(self, sample: DepthSample, *, starts_file: bool) -> "Deferred[None]":
        """Write a sample, the first one of a file or a later one. Fails with the error of the disk or of SQLite."""
        self._is_used = True
        return self._thread.run(lambda: self._start_file(sample) if starts_file else self._add(sample))

    def find(self, moment_ms: int) -> "Deferred[DepthPlace | None]":
        """Return where the depths as of a moment (wall time in ms) are; ``None`` if they are not known."""
        return self._thread.run(lambda: self._find(moment_ms))

    def page(self, place: DepthPlace, vhost: str) -> "Deferred[DepthPage]":
        """Return the next queues of a virtual host after a place. Fails with ``LookupError`` without its file."""
        return self._thread.run(lambda: self._page(place, vhost))

    def stop(self, now_ms: int) -> None:
        """Record that the broker stops, and end the thread."""
        if self._is_used:
            with suppress(
                OSError, sqlite3.Error, TimeoutError, RuntimeError
            ):  # it is stopped already, or the disk fails
                self._thread.wait_for(lambda: self._end(now_ms), _PATIENCE_S)
        self._thread.stop()

    # On the thread

    def _start_file(self, sample: DepthSample) -> None:
        """Begin a file with a sample of all queues. One that cannot be written is removed."""
        self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        if self._file is not None:
            self._file.close()
            self._file = None
        start_ms = sample.begun_ms
        while self._path(start_ms).exists():
            start_ms += 1
        file = DepthFile(self._path(start_ms), start_ms)
        try:
            with file.transaction():
                file.create(self._longest_ms)
                file.add(sample)
        except BaseException:
            file.close()
            file.path.unlink(missing_ok=True)
            raise
        self._file = file
        self._full_size = max(self._max_size // _PART, _GROWTH * file.size)
        self.is_full = False
        self._remove_old(sample.ended_ms)

    def _add(self, sample: DepthSample) -> None:
        assert self._file is not None, "the first sample of a file was not written"
        with self._file.transaction():
            self._file.add(sample)
        self.is_full = self._file.size > self._full_size

    def _end(self, now_ms: int) -> None:
        if self._file is not None:
            file, self._file = self._file, None
            file.end(now_ms)
            file.close()

    def _find(self, moment_ms: int) -> DepthPlace | None:
        """Find the last sample before the moment in all files: their times overlap where the clock was set back.

        That sample alone says whether the broker had stopped. A broken file is an error only if no other one answers.
        """
        latest: tuple[int, float, DepthPlace, bool] | None = None
        broken: sqlite3.Error | None = None
        for start_ms in self._starts():
            if start_ms > moment_ms:
                break
            try:
                with closing(self._open(start_ms)) as reading:
                    sample = reading.file.sample_at(moment_ms)
                    if sample is not None:
                        ended_ms, place, answers = sample
                        found = ended_ms, reading.file.path.stat().st_mtime, place, answers
                        latest = found if latest is None else max(latest, found)
            except sqlite3.Error as error:
                broken = error
        if latest is not None:
            *_, place, answers = latest
            if answers:
                return place
        if broken is not None:
            raise broken
        return None

    def _page(self, place: DepthPlace, vhost: str) -> DepthPage:
        if not self._path(place.file_ms).exists():
            raise LookupError(place)
        with closing(self._open(place.file_ms)) as reading:
            return reading.file.page(place, vhost)

    def _open(self, start_ms: int) -> "_Reading":
        """Open a file; the present one is open."""
        if self._file is not None and self._file.start_ms == start_ms:
            return _Reading(self._file, is_shared=True)
        return _Reading(DepthFile(self._path(start_ms), start_ms), is_shared=False)

    def _remove_old(self, now_ms: int) -> None:
        """Remove files whose samples are all too old, and the oldest while all are too large.

        Neither the last one, nor the present one, which is another if the clock was set back.
        """
        starts = self._starts()
        total = sum(self._path(start_ms).stat().st_size for start_ms in starts)
        for start_ms, end_ms in pairwise(starts):
            if end_ms >= now_ms - self._max_age_ms and total <= self._max_size - self._max_size // _PART:
                return
            if self._file is None or start_ms != self._file.start_ms:
                total -= self._path(start_ms).stat().st_size
                self._path(start_ms).unlink()

    def _starts(self) -> list[int]:
        """Return the starts of the files, in order; other files are not touched."""
        names = (path.name.removesuffix(_SUFFIX) for path in self._directory.glob(f"*{_SUFFIX}"))
        return sorted(int(name) for name in names if name.isascii() and name.isdigit())

    def _path(self, start_ms: int) -> Path:
        return self._directory / f"{start_ms}{_SUFFIX}"


class _Reading:
    """A file that is read; ``close`` closes it unless it is shared with the writer."""

    def __init__(self, file: DepthFile, *, is_shared: bool) -> None:
        self.file = file
        self._is_shared = is_shared

    def close(self) -> None:
        if not self._is_shared:
            self.file.close()
