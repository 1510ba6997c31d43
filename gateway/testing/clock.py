"""FakeClock: time that passes when a test says so."""

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from typing import Final

from gateway.kernel.clock import Background

#: When a test begins unless it says otherwise: some moment in 2023, in milliseconds since the epoch.
BEGINNING_MS: Final = 1_700_000_000_000

#: Moments are rounded to nanoseconds, so that a tenth of a second and nine more are one.
_DIGITS: Final = 9


class FakeClock:
    """A ``Clock`` whose hands a test moves. Owns the calls that are due later."""

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
        """Call once, while the test advances past ``delay_s`` seconds from now."""
        timer = FakeTimer(call)
        heappush(self._due, (round(self._now_s + delay_s, _DIGITS), next(self._order), timer))
        return timer

    def advance(self, seconds: float) -> None:
        """Let time pass and make the calls that fall due, each at its moment, those of one moment in order."""
        end_s = round(self._now_s + seconds, _DIGITS)
        while self._due and self._due[0][0] <= end_s:
            self._now_s, _, timer = heappop(self._due)
            timer.ring()
        self._now_s = end_s


class FakeTimer:
    """A call of a ``FakeClock`` that is due later."""

    def __init__(self, call: Callable[[], None]) -> None:
        self._call: Callable[[], None] | None = call

    def cancel(self) -> None:
        """Forget the call. Harmless when it was made already."""
        self._call = None

    def ring(self) -> None:
        """Make the call, unless it was cancelled."""
        if self._call is not None:
            self._call()
