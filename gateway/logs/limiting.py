"""Rate limits for log lines: the first of a kind is written at once, those that follow are counted."""

import time
from collections.abc import Callable, Hashable
from typing import Final

#: Kinds remembered at a time; when there are more, all are forgotten.
_MOST_KINDS: Final = 1000


class RateLimit:
    """Lets ``burst`` lines of a kind pass in each interval of ``interval_s`` seconds, and counts the others."""

    def __init__(self, burst: int, interval_s: float, now_s: Callable[[], float] = time.monotonic) -> None:
        self._burst = burst
        self._interval_s = interval_s
        self._now_s = now_s
        self._kinds: dict[Hashable, _Interval] = {}

    def passes(self, kind: Hashable) -> int | None:
        """Return how many lines of this kind were left out since the last that passed; ``None`` to leave this out."""
        now_s = self._now_s()
        interval = self._kinds.get(kind)
        if interval is None:
            if len(self._kinds) >= _MOST_KINDS:
                self._kinds.clear()
            interval = self._kinds[kind] = _Interval(now_s)
        if now_s - interval.begun_s >= self._interval_s:
            interval.begun_s = now_s
            interval.passed = 0
        if interval.passed >= self._burst:
            interval.left_out += 1
            return None
        interval.passed += 1
        left_out, interval.left_out = interval.left_out, 0
        return left_out


class _Interval:
    """What passed in the present interval, and what was left out since the last line that passed."""

    __slots__ = ("begun_s", "left_out", "passed")

    def __init__(self, begun_s: float) -> None:
        self.begun_s = begun_s
        self.passed = 0
        self.left_out = 0
