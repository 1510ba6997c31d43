"""The answers of another server about permissions, kept for a time, so that messages never wait for it.

The first request that needs a permission waits for the answer. After ``ttl_s`` the answer is asked for again while the
old one holds, at most until ``2 * ttl_s``; then requests wait again. Without an answer the permission is refused, and
asked for again after ``RETRY_S``.
"""

from collections.abc import Callable
from typing import Final, Protocol

from gateway.api import PendingWork, PermissionUnknown
from gateway_auth.asked.questions import Ask, Question, Verdict

#: Seconds until a server that gave no answer is asked again.
RETRY_S: Final = 1.0

#: The most answers kept by one plugin in one virtual host; when there are more, the oldest are dropped.
MOST_KEPT: Final = 100_000

#: An answer holds this many times its time to live, while a new one is awaited.
_STALE: Final = 2


class ScheduledCall(Protocol):
    """A call that is scheduled, as Twisted's ``callLater`` returns it."""

    def active(self) -> bool:
        """Whether the call is still to come."""
        ...

    def cancel(self) -> None:
        """Do not make the call."""
        ...


class Timing(Protocol):
    """The clock and the timers, as Twisted's reactor has them."""

    def seconds(self) -> float:
        """Return the time in seconds."""
        ...

    def callLater(self, delay: float, callable: Callable[[], None]) -> ScheduledCall:
        """Call after a delay in seconds."""
        ...


class _Entry:
    """One question and its last answer; ``work`` is set while the server is asked."""

    __slots__ = ("answered_at", "has_failed", "is_allowed", "is_answered", "used_at", "work")

    def __init__(self) -> None:
        self.is_answered = False
        self.is_allowed = False
        self.has_failed = False
        self.answered_at = 0.0
        self.used_at = 0.0
        self.work: PendingWork | None = None


class Verdicts:
    """Answers by question. ``changed`` makes all connections check their permissions again."""

    def __init__(self, ask: Ask, timing: Timing, ttl_s: float, changed: Callable[[], None]) -> None:
        self._ask = ask
        self._timing = timing
        self._ttl_s = ttl_s
        self._changed = changed
        self._entries: dict[Question, _Entry] = {}
        self._sweeping: ScheduledCall | None = None
        self._is_closed = False

    def close(self) -> None:
        """End the timer. Answers that are awaited still arrive."""
        self._is_closed = True
        if self._sweeping is not None and self._sweeping.active():
            self._sweeping.cancel()
        self._sweeping = None

    def forget(self) -> None:
        """Drop all answers; those that are awaited are asked for again."""
        self._entries.clear()

    def __len__(self) -> int:
        return len(self._entries)

    def allows(self, question: Question) -> bool:
        """Whether the server permits it. :raises PermissionUnknown: while its answer is awaited."""
        entry = self._entries.get(question)
        if entry is None:
            entry = self._added(question)
        now = entry.used_at = self._timing.seconds()
        if self._holds(entry, now, self._ttl_s):
            return entry.is_allowed
        if entry.work is None:
            self._begin(question, entry)
        if self._holds(entry, now, _STALE * self._ttl_s):
            return entry.is_allowed
        if entry.work is None:  # it was answered at once
            return entry.is_allowed
        raise PermissionUnknown(question.shown, entry.work)

    def _holds(self, entry: _Entry, now: float, longest_s: float) -> bool:
        if entry.has_failed:
            longest_s = min(RETRY_S, longest_s)
        return entry.is_answered and now - entry.answered_at < longest_s

    def _added(self, question: Question) -> _Entry:
        if len(self._entries) >= MOST_KEPT:
            del self._entries[next(iter(self._entries))]
        entry = self._entries[question] = _Entry()
        if self._sweeping is None:
            self._sweep_later()
        return entry

    def _sweep_later(self) -> None:
        if not self._is_closed:
            self._sweeping = self._timing.callLater(self._ttl_s, self._sweep)

    def _begin(self, question: Question, entry: _Entry) -> None:
        entry.work = PendingWork()
        self._ask(question, lambda verdict: self._answered(entry, verdict))

    def _answered(self, entry: _Entry, verdict: Verdict) -> None:
        now, work, before = self._timing.seconds(), entry.work, entry.is_allowed
        was_valid = entry.is_answered and not entry.has_failed
        entry.work = None
        if verdict is None and was_valid and now - entry.answered_at < _STALE * self._ttl_s:
            pass  # the old answer holds a while longer
        else:
            entry.is_answered, entry.has_failed = True, verdict is None
            entry.is_allowed, entry.answered_at = bool(verdict), now
            if was_valid and entry.is_allowed != before:
                self._changed()
        if work is not None:
            work.finish()

    def _sweep(self) -> None:
        """Drop unused answers, and let connections check again, since they remember what was permitted."""
        oldest = self._timing.seconds() - _STALE * self._ttl_s
        unused = [question for question, entry in self._entries.items() if entry.used_at < oldest and not entry.work]
        for question in unused:
            del self._entries[question]
        self._sweeping = None
        if self._entries:
            self._changed()
            self._sweep_later()
