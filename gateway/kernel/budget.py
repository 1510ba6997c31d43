"""The work budget of one turn of the event loop, so that no client waits long for the work of another.

Work is charged in units of about a microsecond, by operations that cost more than the size of a request suggests:
routing to many queues, a route that is not cached. The clock is read only after a number of units, because reading it
costs a tenth of a small message.
"""

from collections.abc import Callable, Iterator
from typing import Final

from gateway.kernel.compiling import mypyc_attr

#: The time a turn may spend on pending requests before the loop serves other connections, in seconds.
TURN_S: Final = 0.005

#: Units of work between two readings of the clock.
WORK_PER_CLOCK_READING: Final = 128

#: Work that runs longer than this without a pause is reported by name, in seconds.
SLOW_S: Final = 0.005

#: A part of a turn may use a whole budget; one that takes longer than this has waited for something, in seconds.
_TOO_LONG_S: Final = 2 * SLOW_S


@mypyc_attr(allow_interpreted_subclasses=True)
class PendingWork:
    """Work of a request that continues in later turns. ``is_refused`` is its outcome once it ``is_done``.

    ``is_unrouted`` is whether it was a publish of a message without a route. The work may ``cause`` more, such as dead
    letters: its request is answered without that, but its connection handles no further input until it is ``over``.
    """

    __slots__ = ("_calls", "_caused", "is_done", "is_refused", "is_unrouted")

    def __init__(self) -> None:
        self.is_done = False
        self.is_refused = False
        self.is_unrouted = False
        self._calls: list[Callable[[PendingWork], None]] = []
        self._caused: list[PendingWork] = []

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

    def cause(self, work: "PendingWork") -> None:
        """Add work that this work leaves to later turns."""
        if work not in self._caused:
            self._caused.append(work)

    @property
    def rest(self) -> "PendingWork | None":
        """Work that this one caused and that is not done, if there is any."""
        caused = self._caused
        while caused and caused[-1].is_done:
            caused.pop()
        return caused[-1] if caused else None

    def when_over(self, call: "Callable[[PendingWork], None]") -> None:
        """Call ``call`` once this work is done, and what it caused; now if it is."""
        work = self.rest if self.is_done else self
        if work is None:
            call(self)
        else:
            work.when_done(lambda _: self.when_over(call))


class Suspect:
    """Code of plugins that is called too often to time each call; one of its calls may be what took long."""

    __slots__ = ()

    def was_slow(self, seconds: float) -> None:
        """Report it, and look closer from now on: a part of a turn in which it was called took this long."""
        raise NotImplementedError


class TurnBudget:
    """The remaining budget of the current turn.

    ``work`` counts the units since the clock was last read. The hot path adds to it, and calls ``is_spent`` once it
    reaches ``WORK_PER_CLOCK_READING``. The time of a turn starts with its first reading. ``on_slow`` is called with the
    cause and the seconds of work that ran longer than ``SLOW_S``. ``pending`` is the work that the request at hand left
    to later turns: its connection handles no further input until that is done. ``suspect`` was called last of its kind
    in this turn.
    """

    __slots__ = ("_ends_s", "_last_suspect", "monotonic_s", "on_slow", "pending", "suspect", "work")

    def __init__(self, monotonic_s: Callable[[], float]) -> None:
        self.monotonic_s = monotonic_s
        self.on_slow: Callable[[str, float], None] = lambda cause, seconds: None
        self._ends_s = 0.0
        self.work = 0
        self.pending: PendingWork | None = None
        self.suspect: Suspect | None = None
        self._last_suspect: Suspect | None = None

    def leave_pending(self, work: PendingWork) -> None:
        """Stop handling the input of the connection at hand, until work of its request is done."""
        self.pending = work
        self.work += WORK_PER_CLOCK_READING

    def leave_rest_pending(self, work: PendingWork) -> None:
        """Stop handling the input of the connection at hand, until work that began in this turn is over, if it is not.

        If the work is done, its request is: only what it caused is pending.
        """
        rest = work.rest if work.is_done else work
        if rest is not None:
            self.leave_pending(rest)

    def caused_by(self, work: PendingWork, steps: Iterator[None]) -> Iterator[None]:
        """Return the same steps; work that they leave pending is caused by ``work``, not by the request at hand."""
        while True:
            former = self.take_pending()
            try:
                next(steps)
            except StopIteration:
                return
            finally:
                caused, self.pending = self.take_pending(), former
                if caused is not None:
                    work.cause(caused)
            yield

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

    def took(self, seconds: float) -> None:
        """Let the suspect know of a part of a turn that took this long, if that is more than a part may take.

        The part may be reported before the end of the turn or after it.
        """
        suspect = self._last_suspect if self.suspect is None else self.suspect
        if suspect is not None and seconds > _TOO_LONG_S:
            self.suspect = self._last_suspect = None
            suspect.was_slow(seconds)

    def renew(self) -> None:
        """Start the next turn."""
        self._last_suspect, self.suspect = self.suspect, None
        self.pending = None
        self.work = 0
        self._ends_s = 0.0
