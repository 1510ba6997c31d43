"""Staged rows: sent by Spark tasks and not yet published; on disk, limited in size, and dropped after a time.

An *attempt* is one run of one task; its name is unique, so that two runs of the same task are two attempts. Its rows
are sent in numbered parts, each of which may be repeated. A part is answered once it is durable. Attempts of the same
run of a job (``staged_runs``) expire together, and the first part of a later run deletes those of the earlier ones.
"""

from collections import OrderedDict
from collections.abc import Callable, Generator, Iterable
from functools import partial
from itertools import islice
from typing import Final

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from gateway.kernel.clock import Clock
from gateway.logs import StructuredLog
from gateway.management.http.errors import HttpError
from gateway.management.pipeline.refusals import too_large
from gateway.management.pipeline.staged_files import AttemptKey, NoDiskSpace, StagedFiles
from gateway.management.pipeline.staged_runs import StagedRuns
from gateway.management.pipeline.staging_threads import StagingThreads

_log: Final = StructuredLog("pipeline")

_MS: Final = 1000

MAX_ATTEMPT_NAME: Final = 64
"""Maximum length of an attempt's name."""

MAX_PARTS: Final = 100_000
"""Maximum number of parts of one user in one virtual host."""

#: Attempts that are deleted at once; further ones are deleted in slices.
_DISCARDED_AT_ONCE: Final = 64

#: Maximum size of the parts that wait for the disk, in bytes.
MAX_UNWRITTEN: Final = 64 * 2**20


class StagedAttempt:
    """The sizes of the parts of one attempt by number, and the numbers of those that are durable.

    ``is_committed`` until its batch is published: it does not expire.
    """

    __slots__ = ("durable", "is_committed", "size", "size_by_part", "updated_at_ms")

    def __init__(self) -> None:
        self.size_by_part: dict[int, int] = {}
        self.durable: set[int] = set()
        self.size = 0
        self.updated_at_ms = 0
        self.is_committed = False

    def has(self, parts: int) -> bool:
        """Return whether the first ``parts`` parts are durable."""
        return len(self.durable) >= parts and all(number in self.durable for number in range(parts))


class Staging:
    """The attempts of all users, the least recently updated first.

    ``limit`` is the maximum size of all of them in bytes. Attempts that are not committed are dropped ``expiry_s``
    seconds after the last part of their run.
    """

    def __init__(self, clock: Clock, files: StagedFiles, threads: StagingThreads, limit: int, expiry_s: int) -> None:
        self._clock = clock
        self._files = files
        self._threads = threads
        self.limit = limit
        self._expiry_s = expiry_s
        self._attempts: OrderedDict[AttemptKey, StagedAttempt] = OrderedDict()
        self._parts_by_owner: dict[tuple[str, str], int] = {}
        self._runs = StagedRuns()
        self._is_timer_set = False
        self._unwritten = 0
        self.size = 0

    def __len__(self) -> int:
        return len(self._attempts)

    def restore(self) -> list[AttemptKey]:
        """Find the parts on the disk; called once, before clients are served.

        Return the attempts that later runs replace. Discard them once those of committed batches are kept.
        """
        now_ms = self._now_ms
        replaced: list[AttemptKey] = []
        found = sorted(self._files.found(), key=lambda part: -part.age_s)
        for part in found:
            attempt = self._renewed(part.key)
            attempt.updated_at_ms = now_ms - int(part.age_s * _MS)
            attempt.durable.add(part.number)
            self._resize(part.key, attempt, part.number, part.size)
            replaced += self._runs.add(part.key, attempt.updated_at_ms)
        self._set_timer()
        return replaced

    def stage(self, key: AttemptKey, number: int, rows: bytes) -> "Deferred[int]":
        """Write a part of an attempt; return a deferred of the number of its durable parts.

        :raises HttpError: 409 if the attempt is committed, or a later run of its batch stages rows, 413 if it exceeds
            the limit, 503 if there is no space for now; the deferred too.
        """
        if self.is_committed(key):
            raise HttpError(409, "committed", f"attempt '{key.name}' is committed: it takes no more rows")
        if (later := self._runs.later(key)) is not None:
            reason = f"the batch is written by a run that began later by the clocks of the drivers: '{later}'"
            raise HttpError(409, "replaced", reason)
        self.discard_all(self._runs.add(key, self._now_ms))
        try:
            self._require_space(key, number, len(rows))
        except HttpError:
            if key not in self._attempts:
                self._runs.remove(key)
            raise
        attempt = self._renewed(key)
        attempt.updated_at_ms = self._now_ms
        self._resize(key, attempt, number, len(rows))
        self._unwritten += len(rows)
        self._set_timer()
        size, written = len(rows), self._threads.write(partial(self._files.write, key, number, rows))
        failed = partial(self._not_written, key, attempt, number, size)
        return written.addCallbacks(partial(self._written, attempt, number, size), failed)

    def attempt(self, key: AttemptKey) -> StagedAttempt | None:
        """Return an attempt; ``None`` if it does not exist."""
        return self._attempts.get(key)

    def read(self, key: AttemptKey, number: int) -> "Deferred[bytes]":
        """Return a deferred of the rows of a part; it fails with ``PartUnusable``."""
        return self._threads.read(partial(self._files.read, key, number))

    def keep(self, keys: Iterable[AttemptKey], *, is_committed: bool = True) -> None:
        """Keep attempts of a committed batch until they are discarded, or no longer."""
        for key in keys:
            if (attempt := self._attempts.get(key)) is not None:
                attempt.is_committed = is_committed
        self._set_timer()

    def is_committed(self, key: AttemptKey) -> bool:
        """Return whether an attempt belongs to a committed batch that is not published completely."""
        attempt = self._attempts.get(key)
        return attempt is not None and attempt.is_committed

    def discard_part(self, key: AttemptKey, number: int) -> None:
        """Delete a part that is published."""
        attempt = self._attempts.get(key)
        if attempt is not None and number in attempt.size_by_part:
            self._forget_part(key, attempt, number)
        self._clean(partial(self._files.remove_part, key, number))

    def discard(self, key: AttemptKey) -> None:
        """Delete an attempt."""
        self._runs.remove(key)
        attempt = self._attempts.pop(key, None)
        if attempt is not None:
            self.size -= attempt.size
            self._count(key, -len(attempt.size_by_part))
            self._clean(partial(self._files.remove, key))

    def discard_all(self, keys: Iterable[AttemptKey]) -> None:
        """Delete the attempts that are not committed: some at once, further ones in slices."""
        discarding = self.discarding(keys)
        if sum(1 for _ in islice(discarding, _DISCARDED_AT_ONCE)) == _DISCARDED_AT_ONCE:
            self._clock.background.add_later(discarding)

    def discarding(self, keys: Iterable[AttemptKey]) -> Generator[None, None, None]:
        """Return the steps that delete the attempts that are not committed."""
        for key in keys:
            if not self.is_committed(key):
                self.discard(key)
            yield

    def stop(self) -> None:
        """Write nothing any more."""
        self._threads.stop()

    # Parts

    def _require_space(self, key: AttemptKey, number: int, size: int) -> None:
        attempt = self._attempts.get(key)
        known = {} if attempt is None else attempt.size_by_part
        growth = size - known.get(number, 0)
        if (0 if attempt is None else attempt.size) + growth > self.limit:
            raise too_large("an attempt", "pipeline.staged_size", self.limit, "raise it or write less at a time")
        if self.size + growth > self.limit:
            raise _full(f"other batches use all of the setting 'pipeline.staged_size', {self.limit} bytes")
        if number not in known and self._parts_by_owner.get(key[:2], 0) >= MAX_PARTS:
            raise _full(f"the limit of {MAX_PARTS} staged parts of a user is reached")
        if self._unwritten and self._unwritten + size > MAX_UNWRITTEN:
            raise _full("the disk is slower than the tasks that send rows")

    def _renewed(self, key: AttemptKey) -> StagedAttempt:
        """Return an attempt, which is now the most recently updated one."""
        attempt = self._attempts.pop(key, None) or StagedAttempt()
        self._attempts[key] = attempt
        return attempt

    def _resize(self, key: AttemptKey, attempt: StagedAttempt, number: int, size: int) -> None:
        growth = size - attempt.size_by_part.get(number, 0)
        self._count(key, int(number not in attempt.size_by_part))
        attempt.size_by_part[number] = size
        attempt.size += growth
        self.size += growth

    def _forget_part(self, key: AttemptKey, attempt: StagedAttempt, number: int) -> None:
        size = attempt.size_by_part.pop(number)
        attempt.durable.discard(number)
        attempt.size -= size
        if self._attempts.get(key) is attempt:
            self.size -= size
            self._count(key, -1)

    def _written(self, attempt: StagedAttempt, number: int, size: int, _: object) -> int:
        self._unwritten -= size
        attempt.durable.add(number)
        return len(attempt.durable)

    def _not_written(self, key: AttemptKey, attempt: StagedAttempt, number: int, size: int, failure: Failure) -> int:
        """Forget a part that is not on the disk, and refuse it."""
        self._unwritten -= size
        if number in attempt.size_by_part and number not in attempt.durable:
            self._forget_part(key, attempt, number)
        if isinstance(failure.value, NoDiskSpace):
            raise _full(f"{failure.value}, and 'disk_free_limit' must stay free")
        if isinstance(failure.value, OSError):
            raise _full(f"the rows cannot be written: {failure.value}")
        assert failure.value is not None
        raise failure.value

    def _count(self, key: AttemptKey, more: int) -> None:
        """Count the parts of an owner: parts without rows use space, too."""
        owner = key[:2]
        parts = self._parts_by_owner.get(owner, 0) + more
        if parts:
            self._parts_by_owner[owner] = parts
        else:
            self._parts_by_owner.pop(owner, None)

    def _clean(self, work: Callable[[], None]) -> None:
        self._threads.write(work).addErrback(_not_removed)

    # Expiry

    @property
    def _now_ms(self) -> int:
        return int(self._clock.monotonic_s() * _MS)

    def _set_timer(self) -> None:
        """Set a timer for the expiry of the oldest attempt that is not committed."""
        oldest = next((each for each in self._attempts.values() if not each.is_committed), None)
        if not self._is_timer_set and oldest is not None:
            self._is_timer_set = True
            due_ms = oldest.updated_at_ms - self._now_ms + self._expiry_s * _MS
            self._clock.call_later(max(1, due_ms) / _MS, self._expire)

    def _expire(self) -> None:
        self._is_timer_set = False
        before_ms = self._now_ms - self._expiry_s * _MS
        for key, attempt in list(self._attempts.items()):
            if attempt.is_committed:
                continue
            if attempt.updated_at_ms > before_ms:
                break
            updated_at_ms = self._runs.updated_at_ms(key)
            if updated_at_ms is not None and updated_at_ms > before_ms:
                self._renewed(key).updated_at_ms = updated_at_ms
            else:
                self.discard(key)
        self._set_timer()


def _full(reason: str) -> HttpError:
    return HttpError(503, "staging_full", reason)


def _not_removed(failure: Failure) -> None:
    """Log that a file was not removed; the start removes or finds it again."""
    _log.warning("staged rows were not removed", error=str(failure.value))
