"""The work that one turn of the event loop may do, so that no client waits for the work of another.

Work is charged in units of about a microsecond, by whatever does more of it than the bytes of a request suggest: a
message that goes to many queues, a route that is looked up anew. Once enough units came together, the clock decides: a
look at it costs as much as a tenth of a small message, so there is none for each.
"""

from collections.abc import Callable
from typing import Final

#: How long a turn may work for requests at hand before it ends and others are served, in seconds.
TURN_S: Final = 0.005

#: Units of work between two looks at the clock.
LOOK_EVERY: Final = 128

#: What takes longer than this at a stretch is told by name, in seconds.
SLOW_S: Final = 0.005


class TurnBudget:
    """What is left of the present turn.

    ``work`` counts the units since the last look at the clock. The hot path adds to it, and asks ``is_spent`` once it
    reached ``LOOK_EVERY``. The time of a turn begins with its first look. ``on_slow`` is called with whatever took
    longer than ``SLOW_S`` at a stretch, and its seconds.
    """

    __slots__ = ("_ends_s", "monotonic_s", "on_slow", "work")

    def __init__(self, monotonic_s: Callable[[], float]) -> None:
        self.monotonic_s = monotonic_s
        self.on_slow: Callable[[str, float], None] = lambda cause, seconds: None
        self._ends_s = 0.0
        self.work = 0

    def is_spent(self) -> bool:
        """Look at the clock: whether the turn has worked for as long as it may."""
        self.work = 0
        now_s = self.monotonic_s()
        if not self._ends_s:
            self._ends_s = now_s + TURN_S
            return False
        return now_s >= self._ends_s

    def renew(self) -> None:
        """Begin the next turn."""
        self.work = 0
        self._ends_s = 0.0
