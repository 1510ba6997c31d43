"""Token buckets: a steady rate with bursts, for any number of keys."""

from collections.abc import Callable
from typing import Final

#: Buckets kept before those that are full again are dropped; a full bucket is the same as none.
_MOST: Final = 10_000


class TokenBuckets:
    """One bucket for each key, which holds up to ``burst`` tokens and gains ``per_s`` tokens a second.

    ``now_s`` returns a monotonic time. If all of very many buckets are in use, the oldest is dropped.
    """

    def __init__(self, per_s: float, burst: int, now_s: Callable[[], float]) -> None:
        self._per_s = per_s
        self._burst = burst
        self._now_s = now_s
        self._buckets: dict[str, tuple[float, float]] = {}

    def __len__(self) -> int:
        return len(self._buckets)

    def take(self, key: str) -> float:
        """Take a token. Return 0 if there was one, else the seconds until the next one."""
        now_s = self._now_s()
        tokens, at_s = self._buckets.get(key, (float(self._burst), now_s))
        tokens = min(self._burst, tokens + (now_s - at_s) * self._per_s)
        if tokens < 1:
            self._buckets[key] = tokens, now_s
            return (1 - tokens) / self._per_s
        if key not in self._buckets and len(self._buckets) >= _MOST:
            self._make_room(now_s)
        self._buckets[key] = tokens - 1, now_s
        return 0.0

    def _make_room(self, now_s: float) -> None:
        """Drop the buckets that are full by now, at least one."""
        fills_s = self._burst / self._per_s
        self._buckets = {key: held for key, held in self._buckets.items() if now_s - held[1] < fills_s}
        while len(self._buckets) >= _MOST:
            del self._buckets[next(iter(self._buckets))]
