"""Staged rows: sent by Spark tasks and not yet committed; in memory, limited in size, and dropped after a time.

An *attempt* is one run of one task; its name is unique, so that two runs of the same task are two attempts. Its rows
are sent in numbered parts, each of which may be repeated.
"""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

from gateway.kernel.clock import Clock
from gateway.management.http.errors import HttpError
from gateway.management.pipeline.refusals import too_large

_MS: Final = 1000

MAX_ATTEMPT_NAME: Final = 64
"""Maximum length of an attempt's name."""


MAX_PARTS: Final = 10_000
"""Maximum number of parts of one user in one virtual host."""


class StagedAttempt:
    """The parts of one attempt, by number."""

    __slots__ = ("part_by_number", "size", "updated_at_ms")

    def __init__(self) -> None:
        self.part_by_number: dict[int, bytes] = {}
        self.size = 0
        self.updated_at_ms = 0


class Staging:
    """The attempts of all users, the least recently updated first.

    ``limit`` is the maximum size of all of them, ``batch_limit`` that of one batch, in bytes.
    """

    def __init__(self, clock: Clock, limit: int, batch_limit: int, expiry_s: int) -> None:
        self._clock = clock
        self._limit = limit
        self._batch_limit = batch_limit
        self._expiry_s = expiry_s
        self._attempts: OrderedDict[tuple[str, str, str], StagedAttempt] = OrderedDict()
        self._parts_by_owner: dict[tuple[str, str], int] = {}
        self._is_timer_set = False
        self.size = 0

    def __len__(self) -> int:
        return len(self._attempts)

    def stage(self, owner: tuple[str, str], name: str, number: int, rows: bytes) -> None:
        """Store a part of an attempt for its owner, a virtual host and a user.

        :raises HttpError: 413 if the attempt exceeds the limit of a batch, 503 if other batches use all the memory.
        """
        key = (*owner, name)
        attempt = self._attempts.pop(key, None) or StagedAttempt()
        self._attempts[key] = attempt
        growth = len(rows) - len(attempt.part_by_number.get(number, b""))
        is_new = number not in attempt.part_by_number
        try:
            self.require_publishable(attempt.size + growth)
            if self.size + growth > self._limit:
                raise HttpError(503, "staging_full", "other batches use all of the setting 'pipeline.staged_size'")
            if is_new and self._parts_by_owner.get(owner, 0) >= MAX_PARTS:
                raise HttpError(503, "staging_full", f"the limit of {MAX_PARTS} staged parts of a user is reached")
        except HttpError:
            if not attempt.part_by_number:
                del self._attempts[key]
            raise
        attempt.part_by_number[number] = rows
        attempt.size += growth
        self.size += growth
        self._count(owner, int(is_new))
        attempt.updated_at_ms = self._now_ms
        self._set_timer()

    def require_publishable(self, size: int) -> None:
        """Check the size of a batch. :raises HttpError: naming the setting."""
        if size > self._batch_limit:
            advice = "write less at a time (option 'maxOffsetsPerTrigger' of the source), or raise it"
            raise too_large("a batch", "pipeline.batch_size", self._batch_limit, advice)

    def rows(self, owner: tuple[str, str], name: str, parts: int) -> Sequence[bytes] | None:
        """Return the first ``parts`` parts of an attempt in order; ``None`` if any of them is missing."""
        attempt = self._attempts.get((*owner, name))
        if attempt is None or any(number not in attempt.part_by_number for number in range(parts)):
            return None
        return [attempt.part_by_number[number] for number in range(parts)]

    def discard(self, owner: tuple[str, str], name: str) -> None:
        """Delete an attempt."""
        attempt = self._attempts.pop((*owner, name), None)
        if attempt is not None:
            self.size -= attempt.size
            self._count(owner, -len(attempt.part_by_number))

    def _count(self, owner: tuple[str, str], more: int) -> None:
        """Count the parts of an owner: parts without rows use memory, too."""
        parts = self._parts_by_owner.get(owner, 0) + more
        if parts:
            self._parts_by_owner[owner] = parts
        else:
            self._parts_by_owner.pop(owner, None)

    @property
    def _now_ms(self) -> int:
        return int(self._clock.monotonic_s() * _MS)

    def _set_timer(self) -> None:
        """Set a timer for the expiry of the oldest attempt."""
        if not self._is_timer_set and self._attempts:
            self._is_timer_set = True
            oldest = next(iter(self._attempts.values()))
            due_s = (oldest.updated_at_ms - self._now_ms) / _MS + self._expiry_s
            self._clock.call_later(max(0.0, due_s), self._expire)

    def _expire(self) -> None:
        self._is_timer_set = False
        before_ms = self._now_ms - self._expiry_s * _MS
        for (vhost, user, name), attempt in list(self._attempts.items()):
            if attempt.updated_at_ms > before_ms:
                break
            self.discard((vhost, user), name)
        self._set_timer()
