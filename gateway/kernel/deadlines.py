"""Many deadlines on one timer; those due at the same moment run in slices, so that clients do not wait for all of them.

Ten thousand clients that disconnect together leave ten thousand sessions that expire together, and as many wills.
"""

from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from gateway.kernel.clock import Clock, Timer

#: Moved or dropped deadlines stay in the heap until they outnumber both the others and this number.
_STALE: Final = 64


class Deadlines:
    """Owns one deadline for each key; calls ``due(key)`` once it has passed, never earlier."""

    def __init__(self, clock: "Clock", due: Callable[[str], None]) -> None:
        self._clock = clock
        self._due = due
        self._at_by_key: dict[str, float] = {}
        self._heap: list[tuple[float, str]] = []
        self._timer: Timer | None = None
        self._timer_at_s = 0.0
        self._is_working = False

    def __len__(self) -> int:
        return len(self._at_by_key)

    def set(self, key: str, delay_s: float) -> None:
        """Set the deadline of a key, replacing an earlier one."""
        at_s = self._clock.monotonic_s() + max(0.0, delay_s)
        self._at_by_key[key] = at_s
        if len(self._heap) > 2 * len(self._at_by_key) + _STALE:
            self._heap = [(at_s, key) for key, at_s in self._at_by_key.items()]
            heapify(self._heap)
        else:
            heappush(self._heap, (at_s, key))
        self._set_timer()

    def drop(self, key: str) -> None:
        """Cancel the deadline of a key; harmless when it has none."""
        self._at_by_key.pop(key, None)
        if not self._at_by_key:
            self._heap.clear()
            self._stop()

    def _set_timer(self) -> None:
        """Set the timer to the first deadline."""
        if self._is_working or not self._heap:
            return
        at_s = self._heap[0][0]
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
            while self._heap and self._heap[0][0] <= max(rang_at_s, self._clock.monotonic_s()):
                at_s, key = heappop(self._heap)
                if self._at_by_key.get(key) == at_s:
                    del self._at_by_key[key]
                    self._due(key)
                    yield
        finally:  # if a call raises, the other keys keep their deadlines
            self._is_working = False
            self._set_timer()
