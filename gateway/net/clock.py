"""The kernel's clock on a reactor."""

import time
from collections.abc import Callable
from typing import Any, Final

from gateway.kernel.budget import SLOW_S
from gateway.kernel.clock import Background
from gateway.net.syscalls import wall_ms

#: A delayed call that fails is made again after this time, then after twice as long, and so on.
FIRST_RETRY_S: Final = 1.0
MOST_RETRIES: Final = 6


class ReactorClock:
    """Real time; ``touch`` is called after each delayed call, so that the turn it belongs to ends.

    A delayed call that raises is told to ``on_fault`` and made again later: what it was to see to is still to be done.
    ``on_slow`` is called with one that took long, and its seconds. While the clock is held no call is made.
    """

    def __init__(self, reactor: Any, touch: Callable[[], None]) -> None:  # Any: Twisted's interfaces are not types
        self._reactor = reactor
        self._touch = touch
        self._held: list[HeldTimer] | None = None
        self.background = Background(self)
        self.on_fault: Callable[[Exception], None] | None = None
        self.on_slow: Callable[[str, float], None] = lambda cause, seconds: None
        #: Milliseconds since the epoch.
        self.wall_ms: Callable[[], int] = wall_ms

    def monotonic_s(self) -> float:
        """Seconds that never run backwards."""
        return time.monotonic()

    def call_later(self, delay_s: float, call: Callable[[], None]) -> "ReactorTimer":
        """Call once, no earlier than ``delay_s`` seconds from now."""
        if self._held is not None:
            held = HeldTimer(self._reactor.seconds() + delay_s, call)
            self._held.append(held)
            return held
        return ReactorTimer(self._reactor.callLater(delay_s, self._call, call, 0))

    def hold(self) -> None:
        """Make no call before ``release``: the node recovers, and its timers must not see it half recovered."""
        self._held = []

    def release(self) -> None:
        """Make the calls that were held back: those that are due soon, the others at their times."""
        held, self._held = self._held or [], None
        now_s = self._reactor.seconds()
        for timer in held:
            if not timer.is_cancelled:
                timer.start(self._reactor.callLater(max(0.0, timer.due_s - now_s), self._call, timer.call, 0))

    def _call(self, call: Callable[[], None], failures: int) -> None:
        """Make a delayed call that failed so many times before."""
        started_s = time.monotonic()
        try:
            call()
        except Exception as error:  # a timer that stopped would hold messages back for good
            if self.on_fault is None:
                raise
            self.on_fault(error)
            if failures < MOST_RETRIES:
                self._reactor.callLater(FIRST_RETRY_S * 2**failures, self._call, call, failures + 1)
        seconds = time.monotonic() - started_s
        if seconds > 2 * SLOW_S:  # a slice is what long work may take
            self.on_slow(f"timer {getattr(call, '__qualname__', type(call).__name__)}", seconds)
        self._touch()


class ReactorTimer:
    """A delayed call of a reactor."""

    __slots__ = ("_delayed_call",)

    def __init__(self, delayed_call: Any) -> None:
        self._delayed_call = delayed_call

    def cancel(self) -> None:
        """Forget the call. Harmless when it was made already."""
        if self._delayed_call.active():
            self._delayed_call.cancel()


class HeldTimer(ReactorTimer):
    """A delayed call that the reactor learns of when the clock is released. ``due_s`` is in the reactor's time."""

    __slots__ = ("call", "due_s", "is_cancelled")

    def __init__(self, due_s: float, call: Callable[[], None]) -> None:
        super().__init__(None)
        self.due_s = due_s
        self.call = call
        self.is_cancelled = False

    def start(self, delayed_call: Any) -> None:
        """Leave the call to the reactor."""
        self._delayed_call = delayed_call

    def cancel(self) -> None:
        """Forget the call, whether the reactor knows of it or not."""
        self.is_cancelled = True
        if self._delayed_call is not None:
            super().cancel()
