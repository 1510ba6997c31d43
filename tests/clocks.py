"""Clocks for tests of long work: time passes while work is done, because the work looks at the clock."""

from gateway.testing.clock import FakeClock

#: How long the work between two looks at the clock takes, in seconds.
LOOK_S = 0.001


class TickingClock(FakeClock):
    """Each look at ``monotonic_s`` takes a millisecond while the clock ``is_ticking``."""

    def __init__(self, is_ticking: bool = True) -> None:
        super().__init__()
        self.is_ticking = is_ticking
        self._spent_s = 0.0

    def monotonic_s(self) -> float:
        self._spent_s += LOOK_S if self.is_ticking else 0
        return super().monotonic_s() + self._spent_s

    def pass_without_calls(self, seconds: float) -> None:
        """Let time pass as a busy reactor does: calls that fall due are made by the next ``advance``."""
        self._now_s += seconds
