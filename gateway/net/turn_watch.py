"""Statistics of the loop's turns: their lengths, and the causes of long ones."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from gateway.net.syscalls import stopwatch

#: A part of a turn that takes longer than this is reported by name, in seconds.
LONG_PART_S: Final = 0.005

#: A turn that takes longer than this is logged, in seconds.
SLOW_TURN_S: Final = 0.1

#: A part is the cause of a turn instead of an earlier part if it is longer by this factor.
_MUCH_LONGER: Final = 1.25

#: Turns shorter than this are counted together; most turns are, so that counting them must cost nothing.
_SHORT_S: Final = 64e-6

#: The class of turns of more than a minute.
_LAST_CLASS: Final = 27

#: Longer turns are counted in classes of length in microseconds; each class is twice as long as the one before.
_CLASSES: Final = 32


class TurnWatch:
    """Counts turns by length, and remembers the longest, since the start and in about the last minute.

    Turns are measured by ``stopwatch``, which counts the short ones; others are reported with ``ended``. Long parts of
    a turn are reported with ``part``; the longest of them is the turn's cause. ``on_slow`` is called with the length in
    seconds and the cause of each turn longer than ``SLOW_TURN_S``.
    """

    def __init__(self) -> None:
        self.on_slow: Callable[[float, str], None] = lambda seconds, cause: None
        self.stopwatch = stopwatch(_SHORT_S, LONG_PART_S)
        self.slow_turns = 0
        self.longest_s = 0.0
        self.longest_cause = ""
        self._longer_turns = 0
        self._longer_total_s = 0.0
        self._counts = [0] * _CLASSES
        self._recent_s = 0.0
        self._earlier_s = 0.0
        self._counts_before = self._counts_of_period = self._all_counts()
        self._part_s = 0.0
        self._cause = ""

    def part(self, cause: str, seconds: float) -> None:
        """Report a part of the present turn that took longer than ``LONG_PART_S``.

        A part that contains another one is reported after it. It is the cause only if it is much longer.
        """
        if seconds > self._part_s * _MUCH_LONGER:
            self._part_s, self._cause = seconds, cause

    def ended(self, seconds: float) -> None:
        """Count a turn that was not short."""
        self._longer_turns += 1
        self._longer_total_s += seconds
        self._counts[min(int(seconds * 1e6).bit_length(), _CLASSES - 1)] += 1
        if seconds > self._recent_s:
            self._recent_s = seconds
            if seconds > self.longest_s:
                self.longest_s, self.longest_cause = seconds, self._cause
        if seconds > SLOW_TURN_S:
            self.slow_turns += 1
            self.on_slow(seconds, self._cause)
        if self._part_s:
            self._part_s, self._cause = 0.0, ""

    def start_period(self) -> None:
        """Start a new period for the recent turns; called every half minute."""
        self._earlier_s, self._recent_s = self._recent_s, 0.0
        self._counts_before, self._counts_of_period = self._counts_of_period, self._all_counts()

    @property
    def turns(self) -> int:
        """The number of turns."""
        return self.stopwatch.short_count + self._longer_turns

    @property
    def total_s(self) -> float:
        """The sum of their lengths."""
        return self.stopwatch.short_total_s + self._longer_total_s

    @property
    def recent_longest_s(self) -> float:
        """The longest turn of the last half to one minute; 0 if all were short."""
        return max(self._recent_s, self._earlier_s)

    def quantile_s(self, share: float) -> float:
        """Return a length that this share of all turns does not exceed: at most twice the exact quantile."""
        return _quantile_s(share, self._all_counts(), self.longest_s)

    def recent_quantile_s(self, share: float) -> float:
        """Return the same of the turns of the last half to one minute."""
        counts = [now - before for now, before in zip(self._all_counts(), self._counts_before, strict=True)]
        return _quantile_s(share, counts, self.recent_longest_s)

    def _all_counts(self) -> list[int]:
        """Return the number of short turns, and of others by class."""
        return [self.stopwatch.short_count, *self._counts]

    def classes(self) -> tuple[list[float], list[int]]:
        """Return the bounds of the classes of length in seconds, and the number of turns in each, one more than bounds.

        The first class has all short turns. Classes beyond a minute are counted together.
        """
        first, last = int(_SHORT_S * 1e6).bit_length(), _LAST_CLASS
        bounds = [float(1 << number) * 1e-6 for number in range(first - 1, last)]
        counts = [self.stopwatch.short_count, *self._counts[first:last], sum(self._counts[last:])]
        return bounds, counts

    def shown(self) -> Mapping[str, float | int | str]:
        """Return the statistics for listings; lengths in milliseconds."""
        return {
            "count": self.turns,
            "p99_ms": round(self.quantile_s(0.99) * 1e3, 3),
            "longest_ms": round(self.longest_s * 1e3, 3),
            "longest_cause": self.longest_cause,
            "p99_recent_ms": round(self.recent_quantile_s(0.99) * 1e3, 3),
            "longest_recent_ms": round(self.recent_longest_s * 1e3, 3),
            "over_100_ms": self.slow_turns,
        }


def _quantile_s(share: float, counts: Sequence[int], longest_s: float) -> float:
    """Return a length that this share of turns does not exceed, by their ``counts``: short ones, then by class."""
    wanted, counted = share * sum(counts), counts[0]
    if counted and counted >= wanted:
        return _SHORT_S
    for number, count in enumerate(counts[1:]):
        counted += count
        if count and counted >= wanted:
            return min(float(1 << number) * 1e-6, longest_s)
    return longest_s
