"""Rows that tasks handed over and nobody committed yet: in memory, bounded, and forgotten when they get old.

An *attempt* is one run of one task; it names itself, so that two runs of the same task are two attempts. Its rows come
in numbered parts, each of which may come again.
"""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

from gateway.kernel.clock import Clock
from gateway.management.http.errors import HttpError
from gateway.management.pipeline.refusals import too_large

_MS: Final = 1000

MAX_ATTEMPT_NAME: Final = 64
"""The longest name an attempt may have."""


MAX_PARTS: Final = 10_000
"""Parts that one user may have staged in one virtual host."""


class StagedAttempt:
    """The parts of one attempt, by number."""

    __slots__ = ("part_by_number", "size", "updated_at_ms")

    def __init__(self) -> None:
        self.part_by_number: dict[int, bytes] = {}
        self.size = 0
        self.updated_at_ms = 0


class Staging:
    """Owns the attempts of all users. The one that was not touched for longest comes first.

    ``limit`` bounds all of them together, ``batch_limit`` what is published at once, both in bytes.
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
        """Keep a part of an attempt for its owner, a virtual host and a user.

        :raises HttpError: 413 when it is more than can ever be published, 503 when others take the room now.
        """
        key = (*owner, name)
        attempt = self._attempts.pop(key, None) or StagedAttempt()
        self._attempts[key] = attempt
        growth = len(rows) - len(attempt.part_by_number.get(number, b""))
        is_new = number not in attempt.part_by_number
        try:
            self.require_publishable(attempt.size + growth)
            if self.size + growth > self._limit:
                raise HttpError(503, "staging_full", "other batches take all of the setting 'pipeline.staged_size'")
            if is_new and self._parts_by_owner.get(owner, 0) >= MAX_PARTS:
                raise HttpError(503, "staging_full", f"a user has at most {MAX_PARTS} parts staged")
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
        """Insist that a batch of this size can be published at once. :raises HttpError: naming the setting."""
        if size > self._batch_limit:
            advice = "write less at a time (option 'maxOffsetsPerTrigger' of the source), or raise it"
            raise too_large("a batch", "pipeline.batch_size", self._batch_limit, advice)

    def rows(self, owner: tuple[str, str], name: str, parts: int) -> Sequence[bytes] | None:
        """Return the first ``parts`` parts of an attempt in order; ``None`` when not all of them are there."""
        attempt = self._attempts.get((*owner, name))
        if attempt is None or any(number not in attempt.part_by_number for number in range(parts)):
            return None
        return [attempt.part_by_number[number] for number in range(parts)]

    def discard(self, owner: tuple[str, str], name: str) -> None:
        """Forget an attempt."""
        attempt = self._attempts.pop((*owner, name), None)
        if attempt is not None:
            self.size -= attempt.size
            self._count(owner, -len(attempt.part_by_number))

    def _count(self, owner: tuple[str, str], more: int) -> None:
        """Count the parts of an owner: one without rows takes memory, too."""
        parts = self._parts_by_owner.get(owner, 0) + more
        if parts:
            self._parts_by_owner[owner] = parts
        else:
            self._parts_by_owner.pop(owner, None)

    @property
    def _now_ms(self) -> int:
        return int(self._clock.monotonic_s() * _MS)

    def _set_timer(self) -> None:
        """See to it that the oldest attempt is looked at when it may have to go."""
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
