"""Rate limits for log lines: some of a kind are written at once, those that follow too fast are counted."""

import logging
import time
from collections.abc import Callable, Hashable
from typing import Final

from gateway.logs.fields import FIELDS, fields_of

#: Kinds remembered at a time; when there are more, all are forgotten.
_MOST_KINDS: Final = 1000

#: The interval of the limit of all lines, in seconds: so many seconds' worth of one kind may come at once.
BURST_S: Final = 10.0


class RateLimit:
    """Lets ``burst`` lines of a kind pass in each interval of ``interval_s`` seconds, and counts the others.

    A token bucket: ``burst`` lines at once, and one more whenever a share of the interval has gone by.
    """

    def __init__(self, burst: int, interval_s: float, now_s: Callable[[], float] = time.monotonic) -> None:
        self._burst = burst
        self._interval_s = interval_s
        self._now_s = now_s
        self._buckets: dict[Hashable, _Bucket] = {}

    def passes(self, kind: Hashable) -> int | None:
        """Return how many lines of this kind were left out since the last that passed; ``None`` to leave this out."""
        now_s = self._now_s()
        bucket = self._buckets.get(kind)
        if bucket is None:
            if len(self._buckets) >= _MOST_KINDS:
                self._buckets.clear()
            bucket = self._buckets[kind] = _Bucket(self._burst, now_s)
        return bucket.take(now_s, self._burst, self._interval_s)


class _Bucket:
    """What one kind has left: ``lines`` may be written now, ``left_out`` were not since the last that was."""

    __slots__ = ("_left_out", "_lines", "_seen_s")

    def __init__(self, lines: float, now_s: float) -> None:
        self._lines = lines
        self._seen_s = now_s
        self._left_out = 0

    def take(self, now_s: float, burst: int, interval_s: float) -> int | None:
        """Take a line; return how many were left out before it, or ``None`` when it is left out too."""
        self._lines = min(burst, self._lines + max(0.0, now_s - self._seen_s) * burst / interval_s)
        self._seen_s = now_s
        if self._lines < 1:
            self._left_out += 1
            return None
        self._lines -= 1
        left_out, self._left_out = self._left_out, 0
        return left_out


class RateFilter(logging.Filter):
    """Leaves out lines of one kind beyond ``lines_per_s``; the next that is written says in ``left_out`` how many.

    A kind is an event, or for other libraries their logger. Lines of level info about a user who is logged in are all
    written, and so is everything of level debug.
    """

    def __init__(self, lines_per_s: int) -> None:
        super().__init__()
        self._now_s = 0.0
        self._limit = RateLimit(int(lines_per_s * BURST_S), BURST_S, lambda: self._now_s)

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record is written."""
        fields = fields_of(record)
        if record.levelno <= logging.INFO and (record.levelno < logging.INFO or fields.get("user")):
            return True
        kind = record.name, record.levelno, record.getMessage() if hasattr(record, FIELDS) else ""
        self._now_s = record.created
        left_out = self._limit.passes(kind)
        if left_out:
            setattr(record, FIELDS, {**fields, "left_out": left_out})
        return left_out is not None
