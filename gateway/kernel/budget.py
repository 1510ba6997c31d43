"""The work budget of one turn of the event loop, so that no client waits long for the work of another.

Work is charged in units of about a microsecond, by operations that cost more than the size of a request suggests:
routing to many queues, a route that is not cached. The clock is read only after a number of units, because reading it
costs a tenth of a small message.
"""

from collections.abc import Callable
from typing import Final

from gateway.kernel.compiling import mypyc_attr

#: The time a turn may spend on pending requests before the loop serves other connections, in seconds.
TURN_S: Final = 0.005

#: Units of work between two readings of the clock.
LOOK_EVERY: Final = 128

#: Work that runs longer than this without a pause is reported by name, in seconds.
SLOW_S: Final = 0.005


@mypyc_attr(allow_interpreted_subclasses=True)
class PendingWork:
    """Work of a request that continues in later turns. ``is_refused`` is its outcome once it ``is_done``."""

    __slots__ = ("_calls", "is_done", "is_refused")

    def __init__(self) -> None:
        self.is_done = False
        self.is_refused = False
        self._calls: list[Callable[[PendingWork], None]] = []

    def when_done(self, call: "Callable[[PendingWork], None]") -> None:
        """Call ``call`` once the work is done, in the turn in which the store gets its changes; now if it is."""
        if self.is_done:
            call(self)
        else:
            self._calls.append(call)

    def finish(self) -> None:
        """Mark the work as done."""
        self.is_done = True
        calls, self._calls = self._calls, []
        for call in calls:
            call(self)


class TurnBudget:
    """The remaining budget of the current turn.

    ``work`` counts the units since the clock was last read. The hot path adds to it, and calls ``is_spent`` once it
    reaches ``LOOK_EVERY``. The time of a turn starts with its first reading. ``on_slow`` is called with the cause and
    the seconds of work that ran longer than ``SLOW_S``. ``pending`` is the work that the request at hand left to later
    turns: its connection handles no further input until that is done.
    """

    __slots__ = ("_ends_s", "monotonic_s", "on_slow", "pending", "work")

    def __init__(self, monotonic_s: Callable[[], float]) -> None:
        self.monotonic_s = monotonic_s
        self.on_slow: Callable[[str, float], None] = lambda cause, seconds: None
        self._ends_s = 0.0
        self.work = 0
        self.pending: PendingWork | None = None

    def leave_pending(self, work: PendingWork) -> None:
        """Stop handling the input of the connection at hand, until work of its request is done."""
        self.pending = work
        self.work += LOOK_EVERY

    def take_pending(self) -> PendingWork | None:
        """Return the ``pending`` work, which then concerns no other connection."""
        pending, self.pending = self.pending, None
        return pending

    def is_spent(self) -> bool:
        """Read the clock; return whether the turn has used up its time, or the request at hand is not done."""
        if self.pending is not None:
            return True
        self.work = 0
        now_s = self.monotonic_s()
        if not self._ends_s:
            self._ends_s = now_s + TURN_S
            return False
        return now_s >= self._ends_s

    def renew(self) -> None:
        """Start the next turn."""
        self.pending = None
        self.work = 0
        self._ends_s = 0.0
