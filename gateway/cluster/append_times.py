"""The times of the last appends to a log."""

from collections import deque
from dataclasses import dataclass
from typing import Final

#: Appends count for so long, and so many at most.
WINDOW_S: Final = 60.0
_MOST: Final = 1000


@dataclass(frozen=True, slots=True)
class AppendLatency:
    """The number of recent appends, and the median, the 99th percentile and the last of their times in milliseconds."""

    count: int = 0
    p50_ms: float = 0.0
    p99_ms: float = 0.0
    last_ms: float = 0.0


class AppendTimes:
    """The times of recent appends, each with when it was answered."""

    def __init__(self) -> None:
        self._recent: deque[tuple[float, float]] = deque(maxlen=_MOST)

    def note(self, answered_s: float, took_s: float) -> None:
        """Note an append; called for each batch."""
        self._recent.append((answered_s, took_s))

    def latency(self, now_s: float) -> AppendLatency:
        """Return the latency of the last minute."""
        times = sorted(took_s for answered_s, took_s in self._recent if now_s - answered_s <= WINDOW_S)
        if not times:
            return AppendLatency()
        last_s = self._recent[-1][1]
        p50_s, p99_s = times[(len(times) - 1) // 2], times[(99 * len(times) - 1) // 100]
        return AppendLatency(len(times), round(1000 * p50_s, 2), round(1000 * p99_s, 2), round(1000 * last_s, 2))
