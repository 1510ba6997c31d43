"""Many deadlines on one timer: what is due at the same moment is done in slices, so that no client waits for all of it.

Ten thousand clients that vanish together leave ten thousand sessions that expire together, and as many wills.
"""

from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from gateway.kernel.clock import Clock, Timer

#: Deadlines that were moved or dropped stay in the heap until there are more of them than of others, and than this.
_STALE: Final = 64


class Deadlines:
    """Owns one deadline for each key. ``due(key)`` is called once it has passed, no earlier."""

    def __init__(self, clock: "Clock", due: Callable[[str], None]) -> None:
        self._clock = clock
        self._due = due
        self._at_by_key: dict[str, float] = {}
        self._heap: list[tuple[float, str]] = []
        self._timer: Timer | None = None
        self._rings_at_s = 0.0
        self._is_working = False

    def __len__(self) -> int:
        return len(self._at_by_key)

    def set(self, key: str, delay_s: float) -> None:
        """Let a key be due after a delay, in place of an earlier deadline of it."""
        at_s = self._clock.monotonic_s() + max(0.0, delay_s)
        self._at_by_key[key] = at_s
        if len(self._heap) > 2 * len(self._at_by_key) + _STALE:
            self._heap = [(at_s, key) for key, at_s in self._at_by_key.items()]
            heapify(self._heap)
        else:
            heappush(self._heap, (at_s, key))
        self._wind()

    def drop(self, key: str) -> None:
        """Forget the deadline of a key; harmless when it has none."""
        self._at_by_key.pop(key, None)
        if not self._at_by_key:
            self._heap.clear()
            self._stop()

    def _wind(self) -> None:
        """Make sure that the timer rings at the first deadline."""
        if self._is_working or not self._heap:
            return
        at_s = self._heap[0][0]
        if self._timer is not None and self._rings_at_s <= at_s:
            return
        self._stop()
        self._rings_at_s = at_s
        self._timer = self._clock.call_later(max(0.0, at_s - self._clock.monotonic_s()), self._ring)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _ring(self) -> None:
        self._timer = None
        self._is_working = True
        self._clock.background.add(self._settle(self._rings_at_s))

    def _settle(self, rang_at_s: float) -> Iterator[None]:
        """Tell each key that is due; yield after each. What the timer rang for is, however the clock rounds."""
        try:
            while self._heap and self._heap[0][0] <= max(rang_at_s, self._clock.monotonic_s()):
                at_s, key = heappop(self._heap)
                if self._at_by_key.get(key) == at_s:
                    del self._at_by_key[key]
                    self._due(key)
                    yield
        finally:  # what a call raises is its own affair; the others keep their deadlines
            self._is_working = False
            self._wind()
