"""Message latencies, from a record of the stream's position over time."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks.load.link import Progress

#: Messages sampled in one stream, evenly distributed.
SAMPLES: Final = 2000


@dataclass(frozen=True, slots=True)
class Latency:
    """Two percentiles in milliseconds."""

    p50_ms: float
    p99_ms: float


def latency(delays_s: Iterable[float]) -> Latency:
    """Summarise delays given in seconds."""
    ordered = sorted(delays_s)
    return Latency(_percentile(ordered, 50) * 1e3, _percentile(ordered, 99) * 1e3)


def delays(left: Progress, arrived: Progress) -> Iterable[float]:
    """Return the seconds between complete sending and complete arrival of evenly chosen messages.

    Counts rise in both records, so the n-th message was sent at the first entry with a count of at least n, and
    arrived likewise.
    """
    messages = min(left.counts[-1], arrived.counts[-1])
    for number in range(1, messages + 1, max(1, messages // SAMPLES)):
        start = left.times[bisect_left(left.counts, number)]
        yield arrived.times[bisect_left(arrived.counts, number)] - start


def _percentile(ordered: Sequence[float], percent: int) -> float:
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]
