"""Token buckets: a steady rate with bursts, for any number of keys."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

#: Buckets kept before those that are full again are dropped; a full bucket is the same as none.
_MOST: Final = 10_000


@dataclass(frozen=True, slots=True)
class BucketState:
    """A bucket that is not full: its tokens, and how often one was missing since it was full last."""

    key: str
    tokens: float
    missed: int


class TokenBuckets:
    """One bucket for each key, which holds up to ``burst`` tokens and gains ``per_s`` tokens a second.

    ``now_s`` returns a monotonic time. If all of very many buckets are in use, the oldest is dropped.
    """

    def __init__(self, per_s: float, burst: int, now_s: Callable[[], float]) -> None:
        self._per_s = per_s
        self._burst = burst
        self._now_s = now_s
        self._buckets: dict[str, tuple[float, float, int]] = {}

    def __len__(self) -> int:
        return len(self._buckets)

    def take(self, key: str) -> float:
        """Take a token. Return 0 if there was one, else the seconds until the next one."""
        now_s = self._now_s()
        tokens, at_s, missed = self._buckets.get(key, (float(self._burst), now_s, 0))
        tokens += (now_s - at_s) * self._per_s
        if tokens >= self._burst:
            tokens, missed = float(self._burst), 0
        if tokens < 1:
            self._buckets[key] = tokens, now_s, missed + 1
            return (1 - tokens) / self._per_s
        if key not in self._buckets and len(self._buckets) >= _MOST:
            self._make_room(now_s)
        self._buckets[key] = tokens - 1, now_s, missed
        return 0.0

    def fill(self, key: str) -> None:
        """Fill a bucket."""
        self._buckets.pop(key, None)

    def states(self) -> Iterator[BucketState]:
        """Yield the buckets that are not full, oldest first."""
        now_s = self._now_s()
        for key, (tokens, at_s, missed) in tuple(self._buckets.items()):
            tokens += (now_s - at_s) * self._per_s
            if tokens < self._burst:
                yield BucketState(key, tokens, missed)

    def _make_room(self, now_s: float) -> None:
        """Drop the buckets that are full by now, at least one."""
        fills_s = self._burst / self._per_s
        self._buckets = {key: held for key, held in self._buckets.items() if now_s - held[1] < fills_s}
        while len(self._buckets) >= _MOST:
            del self._buckets[next(iter(self._buckets))]
