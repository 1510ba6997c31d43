"""The kernel's clock, on a reactor."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from twisted.internet.task import Cooperator

from gateway.kernel.budget import SLOW_S
from gateway.kernel.clock import SLICE_S, Background
from gateway.net.syscalls import wall_ms

#: Delay before a failed delayed call is repeated; it doubles with each further failure.
FIRST_RETRY_S: Final = 1.0
MOST_RETRIES: Final = 6


class ReactorClock:
    """Real time. ``touch`` is called after each delayed call, so that its turn ends.

    A delayed call that raises is reported to ``on_fault`` and repeated later, because its work still has to be done.
    ``on_slow`` receives the name and the seconds of a slow call. While the clock is held, no call is made.
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

    #: Monotonic seconds: the function itself, because it is called for each call of a plugin.
    monotonic_s = staticmethod(time.monotonic)

    def call_later(self, delay_s: float, call: Callable[[], None]) -> "ReactorTimer":
        """Call once, no earlier than ``delay_s`` seconds from now."""
        if self._held is not None:
            held = HeldTimer(self._reactor.seconds() + delay_s, call)
            self._held.append(held)
            return held
        return ReactorTimer(self._reactor.callLater(delay_s, self._call, call, 0))

    def hold(self) -> None:
        """Make no calls before ``release``, because timers must not run while the node is recovering."""
        self._held = []

    def release(self) -> None:
        """Make the calls that were held back: overdue ones as soon as possible, the others at their times."""
        held, self._held = self._held or [], None
        now_s = self._reactor.seconds()
        for timer in held:
            if not timer.is_cancelled:
                timer.start(self._reactor.callLater(max(0.0, timer.due_s - now_s), self._call, timer.call, 0))

    def _call(self, call: Callable[[], None], failures: int) -> None:
        """Make a delayed call that has failed ``failures`` times before."""
        started_s = self.monotonic_s()
        try:
            call()
        except Exception as error:  # a timer that stopped would hold messages back for ever
            if self.on_fault is None:
                raise
            self.on_fault(error)
            if failures < MOST_RETRIES:
                self._reactor.callLater(FIRST_RETRY_S * 2**failures, self._call, call, failures + 1)
        seconds = self.monotonic_s() - started_s
        if seconds > 2 * SLOW_S:  # long work may take one slice
            self.on_slow(f"timer {getattr(call, '__qualname__', type(call).__name__)}", seconds)
        self._touch()


class ReactorTimer:
    """A delayed call of a reactor."""

    __slots__ = ("_delayed_call",)

    def __init__(self, delayed_call: Any) -> None:
        self._delayed_call = delayed_call

    def cancel(self) -> None:
        """Cancel the call. Harmless after the call was made."""
        if self._delayed_call.active():
            self._delayed_call.cancel()


class HeldTimer(ReactorTimer):
    """A delayed call that is passed to the reactor when the clock is released. ``due_s`` is in the reactor's time."""

    __slots__ = ("call", "due_s", "is_cancelled")

    def __init__(self, due_s: float, call: Callable[[], None]) -> None:
        super().__init__(None)
        self.due_s = due_s
        self.call = call
        self.is_cancelled = False

    def start(self, delayed_call: Any) -> None:
        """Attach the reactor's delayed call."""
        self._delayed_call = delayed_call

    def cancel(self) -> None:
        """Cancel the call, whether or not it was passed to the reactor."""
        self.is_cancelled = True
        if self._delayed_call is not None:
            super().cancel()


class TimeSlice:
    """Tells a ``Cooperator`` of Twisted when a slice of its work is over. Its own slices are twice as long.

    ``now_s`` returns monotonic seconds.
    """

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._ends_s = now_s() + SLICE_S

    def __call__(self) -> bool:
        """Tell whether the slice is over."""
        return self._now_s() >= self._ends_s


def slices_on(reactor: Any, now_s: Callable[[], float]) -> Cooperator:
    """Return what runs long work in slices. Its tasks share one slice of each turn, so a node has one of it.

    ``now_s`` returns monotonic seconds.
    """
    return Cooperator(partial(TimeSlice, now_s), partial(reactor.callLater, 0))
