"""Scheduling of stream reads: all consumers of a virtual host's streams read in slices, in round-robin order."""

from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from gateway.kernel.clock import Clock
    from gateway.kernel.streams.cursor import Cursor

#: The budget of one turn of the event loop: about this many messages, which take a few milliseconds.
TURN_BUDGET: Final = 1024


class ReadScheduler:
    """Runs the cursors that have something to read, in turns of their own."""

    __slots__ = ("_clock", "_cursors", "_is_scheduled")

    def __init__(self, clock: "Clock") -> None:
        self._clock = clock
        self._cursors: deque[Cursor] = deque()
        self._is_scheduled = False

    def wake(self, cursor: "Cursor") -> None:
        """Schedule a cursor until it has read everything or its consumer has to wait."""
        if not cursor.is_awake:
            cursor.is_awake = True
            self._cursors.append(cursor)
            self._schedule()

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self._clock.call_later(0, self._run)

    def _run(self) -> None:
        self._is_scheduled = False
        budget = TURN_BUDGET
        cursors = self._cursors
        while cursors and budget > 0:
            cursor = cursors.popleft()
            cursor.is_awake = False
            if cursor.is_over or cursor.consumer.is_waiting or not cursor.is_behind:
                continue
            budget -= cursor.deliver_next(budget)
            if not (cursor.is_over or cursor.consumer.is_waiting or cursor.is_awake) and cursor.is_behind:
                cursor.is_awake = True
                cursors.append(cursor)
        if cursors:
            self._schedule()
