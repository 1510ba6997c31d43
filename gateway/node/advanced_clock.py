"""A clock that tests advance, see ``control_lines``."""

from collections.abc import Callable
from typing import Any, Final

from gateway.net.clock import ReactorClock

#: The number of checks in a row that find no work left before the answer is sent, and the time between them in seconds.
_CHECKS: Final = 3
_INTERVAL_S: Final = 0.001


class AdvancedClock(ReactorClock):
    """Real time plus the seconds by which it was advanced.

    A timer that is due within these seconds expires at once, and once only; the next one starts from the new time.
    """

    def __init__(self, reactor: Any, touch: Callable[[], None]) -> None:  # Any: Twisted's interfaces are not types
        super().__init__(reactor, touch)
        self._advanced_s = 0.0
        real_ms = self.wall_ms
        self.wall_ms = lambda: real_ms() + round(self._advanced_s * 1000)

    def monotonic_s(self) -> float:
        """Return monotonic seconds."""
        return super().monotonic_s() + self._advanced_s

    def advance(self, seconds: float, done: Callable[[], None]) -> None:
        """Advance the time; call ``done`` when the work that became due is finished."""
        self._advanced_s += seconds
        for call in self._reactor.getDelayedCalls():
            call.delay(-seconds)
        self._check(_CHECKS, done)

    def _check(self, left: int, done: Callable[[], None]) -> None:
        if not left:
            done()
            return
        left = _CHECKS if len(self.background) else left - 1
        self._reactor.callLater(_INTERVAL_S, self._check, left, done)
