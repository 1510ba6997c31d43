"""Many deadlines on one timer; those due at the same moment run in slices, so that clients do not wait for all of them.

Ten thousand clients that disconnect together leave ten thousand sessions that expire together, and as many wills.
"""

from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final

from gateway.kernel.clock import drained

if TYPE_CHECKING:
    from gateway.kernel.clock import Clock, Timer

#: Moved or dropped deadlines stay in the heap until they outnumber both the others and this number.
_STALE: Final = 64

#: Deadlines moved with each new one while the heap is tidied, so that none of 100,000 clients pays for all of them.
_MOVED: Final = 4

#: Stale deadlines that are freed between two readings of the clock.
_FREED: Final = 256


class Deadlines:
    """Owns one deadline for each key; calls ``due(key)`` once it has passed, never earlier.

    While the heap is tidied, ``_older`` is the rest of the earlier one. It stays a heap when its last item is removed.
    """

    def __init__(self, clock: "Clock", due: Callable[[str], None]) -> None:
        self._clock = clock
        self._due = due
        self._at_by_key: dict[str, float] = {}
        self._heap: list[tuple[float, str]] = []
        self._older: list[tuple[float, str]] = []
        self._timer: Timer | None = None
        self._timer_at_s = 0.0
        self._is_working = False

    def __len__(self) -> int:
        return len(self._at_by_key)

    def set(self, key: str, delay_s: float) -> None:
        """Set the deadline of a key, replacing an earlier one."""
        at_s = self._clock.monotonic_s() + max(0.0, delay_s)
        self._at_by_key[key] = at_s
        heappush(self._heap, (at_s, key))
        self._tidy()
        self._set_timer()

    def drop(self, key: str) -> None:
        """Cancel the deadline of a key; harmless when it has none."""
        self._at_by_key.pop(key, None)
        if not self._at_by_key:
            if len(self._heap) + len(self._older) > _FREED:
                self._clock.background.add(_freeing(self._heap, self._older))
            self._heap, self._older = [], []
            self._stop()

    def release(self) -> None:
        """Stop, and release the callback: its owner is gone."""
        self._at_by_key.clear()
        self._stop()
        self._due = lambda key: None

    def _tidy(self) -> None:
        """Move some deadlines to a new heap, without the stale ones, if there are many of these."""
        if not self._older:
            if len(self._heap) > 2 * len(self._at_by_key) + _STALE:
                self._older, self._heap = self._heap, []
            return
        for _ in range(min(_MOVED, len(self._older))):
            at_s, key = self._older.pop()
            if self._at_by_key.get(key) == at_s:
                heappush(self._heap, (at_s, key))

    def _first_heap(self) -> list[tuple[float, str]]:
        """Return the heap with the first deadline; both may be empty."""
        if not self._older or (self._heap and self._heap[0] <= self._older[0]):
            return self._heap
        return self._older

    def _set_timer(self) -> None:
        """Set the timer to the first deadline."""
        heap = self._first_heap()
        if self._is_working or not heap:
            return
        at_s = heap[0][0]
        if self._timer is not None and self._timer_at_s <= at_s:
            return
        self._stop()
        self._timer_at_s = at_s
        self._timer = self._clock.call_later(max(0.0, at_s - self._clock.monotonic_s()), self._expire)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _expire(self) -> None:
        self._timer = None
        self._is_working = True
        self._clock.background.add(self._settle(self._timer_at_s))

    def _settle(self, rang_at_s: float) -> Iterator[None]:
        """Call ``due`` for each key that is due, and yield after each.

        Keys at the timer's own deadline count as due, whatever the clock's rounding.
        """
        try:
            while (heap := self._first_heap()) and heap[0][0] <= max(rang_at_s, self._clock.monotonic_s()):
                at_s, key = heappop(heap)
                if self._at_by_key.get(key) == at_s:
                    del self._at_by_key[key]
                    self._due(key)
                    yield
        finally:  # if a call raises, the other keys keep their deadlines
            self._is_working = False
            self._set_timer()


def _freeing(*heaps: list[tuple[float, str]]) -> Iterator[None]:
    """Return the steps that free the items of heaps that are not needed any more."""
    for heap in heaps:
        for number, _ in enumerate(drained(heap)):
            if number % _FREED == _FREED - 1:
                yield
