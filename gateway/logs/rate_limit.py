"""Rate limits for log lines: a burst of each kind is written, faster ones are counted and dropped."""

import logging
import time
from collections.abc import Callable, Hashable, Mapping
from typing import Final

from gateway.kernel.caches import remember
from gateway.logs.fields import FIELDS, fields_of

#: Kinds remembered at a time; when there are more, all are forgotten.
_MOST_KINDS: Final = 1000

#: The interval of the overall limit, in seconds: one kind may use this many seconds' worth of lines in a burst.
BURST_S: Final = 10.0


class RateLimit:
    """Passes ``burst`` lines of a kind in each interval of ``interval_s`` seconds and counts the others.

    A token bucket: ``burst`` lines at once, then one more for each elapsed ``1 / burst`` of the interval.
    """

    def __init__(self, burst: int, interval_s: float, now_s: Callable[[], float] = time.monotonic) -> None:
        self._burst = burst
        self._interval_s = interval_s
        self._now_s = now_s
        self._buckets: dict[Hashable, _Bucket] = {}

    def passes(self, kind: Hashable, now_s: float | None = None) -> int | None:
        """Return the number of lines of this kind dropped since the last that passed; ``None`` to drop this one too.

        ``now_s`` is the time of the line, by default now.
        """
        now_s = self._now_s() if now_s is None else now_s
        bucket = self._buckets.get(kind)
        if bucket is None:
            bucket = remember(self._buckets, kind, _Bucket(self._burst, now_s), _MOST_KINDS)
        return bucket.take(now_s, self._burst, self._interval_s)


class _Bucket:
    """The state of one kind: ``lines`` tokens remain, ``left_out`` lines were dropped since the last one written."""

    __slots__ = ("_left_out", "_lines", "_seen_s")

    def __init__(self, lines: float, now_s: float) -> None:
        self._lines = lines
        self._seen_s = now_s
        self._left_out = 0

    def take(self, now_s: float, burst: int, interval_s: float) -> int | None:
        """Take a token; return the number of lines dropped before, or ``None`` if there is no token."""
        self._lines = min(burst, self._lines + max(0.0, now_s - self._seen_s) * burst / interval_s)
        self._seen_s = now_s
        if self._lines < 1:
            self._left_out += 1
            return None
        self._lines -= 1
        left_out, self._left_out = self._left_out, 0
        return left_out


class RateFilter(logging.Filter):
    """Drops lines of one kind beyond ``lines_per_s``; the next line written has the dropped count in ``left_out``.

    A kind is an event or, for other libraries, a logger name. Info lines about an authenticated user and debug
    lines are never dropped.
    """

    def __init__(self, lines_per_s: int) -> None:
        super().__init__()
        self._limit = RateLimit(int(lines_per_s * BURST_S), BURST_S)

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record is written."""
        fields, event = fields_of(record), record.getMessage() if hasattr(record, FIELDS) else ""
        left_out = self.passes(record.name, record.levelno, event, fields, record.created)
        if left_out:
            setattr(record, FIELDS, {**fields, "left_out": left_out})
        return left_out is not None

    def passes(self, logger: str, level: int, event: str, fields: Mapping[str, object], created_s: float) -> int | None:
        """Return the number of lines of the entry's kind dropped since the last that passed; ``None`` to drop this."""
        if level <= logging.INFO and (level < logging.INFO or fields.get("user")):
            return 0
        return self._limit.passes((logger, level, event), created_s)
