"""Whose turn it is to read on: consumers of all streams of a virtual host, a slice each, nobody before the others."""

from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from gateway.kernel.clock import Clock
    from gateway.kernel.streams.cursor import Cursor

#: What all of them are handed in one turn of the event loop: about so many messages, which takes a few milliseconds.
TURN_BUDGET: Final = 1024


class ReadScheduler:
    """Lets cursors go on that have something to read, in turns of their own."""

    __slots__ = ("_clock", "_cursors", "_is_scheduled")

    def __init__(self, clock: "Clock") -> None:
        self._clock = clock
        self._cursors: deque[Cursor] = deque()
        self._is_scheduled = False

    def wake(self, cursor: "Cursor") -> None:
        """Let a cursor take part until there is nothing left for it, or its consumer has to wait."""
        if not cursor.is_awake:
            cursor.is_awake = True
            self._cursors.append(cursor)
            self._schedule()

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self._clock.call_later(0, self._go_on)

    def _go_on(self) -> None:
        self._is_scheduled = False
        budget = TURN_BUDGET
        cursors = self._cursors
        while cursors and budget > 0:
            cursor = cursors.popleft()
            cursor.is_awake = False
            if cursor.is_over or not cursor.is_behind:
                continue
            budget -= cursor.go_on(budget)
            if not (cursor.is_over or cursor.consumer.is_waiting or cursor.is_awake) and cursor.is_behind:
                cursor.is_awake = True
                cursors.append(cursor)
        if cursors:
            self._schedule()
