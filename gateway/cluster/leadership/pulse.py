"""The pulse of a node: regular calls, and the time in which it was able to watch others."""

from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeAlias

from gateway.cluster.leadership.timing import TICK_S
from gateway.kernel.clock import Clock, Timer

Start: TypeAlias = Callable[[Coroutine[Any, Any, None]], object]  # Any: what a coroutine passes to its driver
"""Runs a coroutine of the ports, now and later: ``Deferred.fromCoroutine``, or the driver of a test."""

#: A pause between two ticks counts for so long at most.
_MOST_STEP_S: Final = 2 * TICK_S


class Pulse:
    """Calls ``tick`` each ``TICK_S``, until it is stopped.

    ``watched_s`` counts the seconds in which the process ran. A process that was stopped for 10 s has not read what the
    others wrote meanwhile, so it must not think that they were silent for 10 s.
    """

    def __init__(self, clock: Clock, tick: Callable[[], None]) -> None:
        self._clock = clock
        self._tick = tick
        self._watched_s = 0.0
        self._last_s = clock.monotonic_s()
        self._timer: Timer | None = None

    @property
    def watched_s(self) -> float:
        """Seconds that never decrease; only differences are meaningful."""
        return self._watched_s + min(self._clock.monotonic_s() - self._last_s, _MOST_STEP_S)

    def start(self) -> None:
        """Begin."""
        self._last_s = self._clock.monotonic_s()
        self._timer = self._clock.call_later(TICK_S, self._beat)

    def stop(self) -> None:
        """Make no more calls; safe to call twice."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _beat(self) -> None:
        self._watched_s = self.watched_s
        self._last_s = self._clock.monotonic_s()
        self._timer = self._clock.call_later(TICK_S, self._beat)
        self._tick()
