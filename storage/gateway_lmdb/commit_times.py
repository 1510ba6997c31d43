"""The durations of the commits of a store."""

from bisect import bisect_left
from typing import Final

#: The bounds of the classes of durations, in seconds.
BOUNDS_S: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class CommitTimes:
    """Counts commits by duration, sync included. Written by the writer's thread, read by any.

    ``counts`` has one class more than ``bounds_s``; ``total_s`` is the sum of all durations, ``written_bytes`` the size
    of the changes.
    """

    def __init__(self) -> None:
        self.bounds_s = BOUNDS_S
        self.counts = [0] * (len(BOUNDS_S) + 1)
        self.total_s = 0.0
        self.written_bytes = 0

    def add(self, seconds: float, size: int) -> None:
        """Count a commit that took ``seconds`` and wrote ``size`` bytes."""
        self.counts[bisect_left(BOUNDS_S, seconds)] += 1
        self.total_s += seconds
        self.written_bytes += size
