"""The slices of a batch that wait for the disk, and how many of them may.

Other clients' confirms wait behind them, in the same commits of the disk. So the measure is the time that a slice
waits: as long as it is short, more slices may wait, because few large commits write and sync less than many small ones.
"""

from collections import deque
from typing import TYPE_CHECKING, Final

from twisted.internet.defer import Deferred

if TYPE_CHECKING:
    from gateway.kernel.journal.journal import Journal

#: Slices that may wait for a disk of any speed, and for the fastest one: up to one and eight megabytes.
LEAST: Final = 2
MOST: Final = 16

#: The longest wait of a slice while other clients wait for confirms, and alone, in seconds. That of a confirm may be
#: several times as long: it may come right after the writer has begun, and shares its commit with slices that follow.
SHARED_S: Final = 0.002
ALONE_S: Final = 0.008

#: The time after a confirm in which another one is expected, in seconds.
_SHARED_FOR_S: Final = 1.0


class Unwritten:
    """The slices of one batch. ``most`` may wait for the disk; the next one waits until the first is durable."""

    def __init__(self, journal: "Journal") -> None:
        self._journal = journal
        self._appended_s: deque[float] = deque()
        self._waiting: Deferred[None] | None = None
        self._confirm_lsn = 0
        self._shared_until_s = 0.0
        self.most = LEAST

    def add(self) -> "Deferred[None] | None":
        """Add the slice of this turn; return a deferred until the next one may follow, ``None`` if it may now."""
        journal = self._journal
        self._appended_s.append(journal.clock.monotonic_s())
        journal.when_durable(journal.pending_lsn, self._durable)
        if len(self._appended_s) <= self.most:
            return None
        self._waiting = Deferred()
        return self._waiting

    def _durable(self) -> None:
        """Note that the first slice is durable, and by its time whether more or fewer may wait."""
        now_s = self._journal.clock.monotonic_s()
        if now_s - self._appended_s.popleft() > (SHARED_S if self._is_shared(now_s) else ALONE_S):
            self.most = max(LEAST, self.most - 1)
        elif self._waiting is not None:
            self.most = min(MOST, self.most + 1)
        if self._waiting is not None and len(self._appended_s) <= self.most:
            waiting, self._waiting = self._waiting, None
            waiting.callback(None)

    def _is_shared(self, now_s: float) -> bool:
        """Whether other clients waited for confirms lately."""
        if self._journal.confirm_lsn != self._confirm_lsn:
            self._confirm_lsn = self._journal.confirm_lsn
            self._shared_until_s = now_s + _SHARED_FOR_S
        return now_s < self._shared_until_s
