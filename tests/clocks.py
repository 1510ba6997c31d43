"""A clock for tests of long work: it advances each time the work reads it."""

from heapq import heappop

from gateway.testing.clock import FakeClock

#: Duration of the work between two reads of the clock, in seconds.
LOOK_S = 0.001


class TickingClock(FakeClock):
    """Each read of ``monotonic_s`` takes a millisecond while the clock ``is_ticking``."""

    def __init__(self, is_ticking: bool = True) -> None:
        super().__init__()
        self.is_ticking = is_ticking
        self._spent_s = 0.0

    def monotonic_s(self) -> float:
        self._spent_s += LOOK_S if self.is_ticking else 0
        return super().monotonic_s() + self._spent_s

    def pass_without_calls(self, seconds: float) -> None:
        """Advance as a busy reactor does: calls that fall due are made by the next ``advance``."""
        self._now_s += seconds


class TurnClock(TickingClock):
    """Makes scheduled calls one turn at a time, as a reactor does."""

    def turn(self, seconds: float = 0) -> bool:
        """Advance the clock, then make the calls that are due; return whether there were any."""
        self._now_s += seconds
        due = []
        while self._due and self._due[0][0] <= self._now_s:
            due.append(heappop(self._due)[2])
        for timer in due:
            timer.ring()
        return bool(due)
