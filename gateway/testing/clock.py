"""A clock for tests, which advances only on request."""

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from typing import Final

from gateway.kernel.clock import Background

#: The default time at the start of a test: a moment in 2023, in milliseconds since the epoch.
BEGINNING_MS: Final = 1_700_000_000_000

#: Times are rounded to nanoseconds, so that adding 0.1 s and 0.9 s gives exactly 1 s.
_DIGITS: Final = 9


class FakeClock:
    """A ``Clock`` that a test advances. Owns the scheduled calls."""

    def __init__(self, beginning_ms: int = BEGINNING_MS) -> None:
        self._beginning_ms = beginning_ms
        self._now_s = 0.0
        self._due: list[tuple[float, int, FakeTimer]] = []
        self._order = count()
        self.background = Background(self)

    def wall_ms(self) -> int:
        """Milliseconds since the epoch."""
        return self._beginning_ms + round(self._now_s * 1000)

    def monotonic_s(self) -> float:
        """Seconds since the test began."""
        return self._now_s

    def call_later(self, delay_s: float, call: Callable[[], None]) -> "FakeTimer":
        """Call once, when the test advances to ``delay_s`` seconds from now."""
        timer = FakeTimer(call)
        heappush(self._due, (round(self._now_s + delay_s, _DIGITS), next(self._order), timer))
        return timer

    def advance(self, seconds: float) -> None:
        """Advance the clock and make the calls that fall due, each at its time; calls due at the same time run in
        order.
        """
        end_s = round(self._now_s + seconds, _DIGITS)
        while self._due and self._due[0][0] <= end_s:
            self._now_s, _, timer = heappop(self._due)
            timer.ring()
        self._now_s = end_s

    def set_back(self, seconds: float) -> None:
        """Set the wall clock back, as an operator or the time service does; timers are not affected."""
        self._beginning_ms -= round(seconds * 1000)


class FakeTimer:
    """A scheduled call of a ``FakeClock``."""

    def __init__(self, call: Callable[[], None]) -> None:
        self._call: Callable[[], None] | None = call

    def cancel(self) -> None:
        """Cancel the call; safe to call after it was made."""
        self._call = None

    def ring(self) -> None:
        """Make the call, unless it was cancelled."""
        if self._call is not None:
            self._call()
