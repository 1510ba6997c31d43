"""The kernel's clock on a reactor."""

import time
from collections.abc import Callable
from typing import Any

from gateway.net.syscalls import wall_ms


class ReactorClock:
    """Real time; ``touch`` is called after each delayed call, so that the turn it belongs to ends."""

    def __init__(self, reactor: Any, touch: Callable[[], None]) -> None:  # Any: Twisted's interfaces are not types
        self._reactor = reactor
        self._touch = touch
        #: Milliseconds since the epoch.
        self.wall_ms: Callable[[], int] = wall_ms

    def monotonic_s(self) -> float:
        """Seconds that never run backwards."""
        return time.monotonic()

    def call_later(self, delay_s: float, call: Callable[[], None]) -> "ReactorTimer":
        """Call once, no earlier than ``delay_s`` seconds from now."""
        return ReactorTimer(self._reactor.callLater(delay_s, self._call, call))

    def _call(self, call: Callable[[], None]) -> None:
        call()
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
