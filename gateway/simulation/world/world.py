"""The virtual world of one run: its time, its events and its random choices all follow from one seed."""

from collections.abc import Callable
from heapq import heappop, heappush
from random import Random
from typing import Final

#: The wall time at the start of a run: a moment in 2023, in milliseconds since the epoch.
BEGINNING_MS: Final = 1_700_000_000_000

#: What one reading of the clock costs in virtual seconds; one of these holds for a whole run. A dear reading makes
#: turns end after a few steps, so that long work is cut into many turns.
_READING_COSTS: Final = (0.0, 1e-6, 2e-5, 4e-4)


class WorldEvent:
    """A scheduled call, which can be cancelled."""

    __slots__ = ("at_s", "call")

    def __init__(self, at_s: float, call: Callable[[], None] | None) -> None:
        self.at_s = at_s
        self.call = call

    def cancel(self) -> None:
        """Cancel the call; harmless after it was made."""
        self.call = None


class World:
    """Owns the virtual time and the scheduled events. Events of the same time happen in the order of scheduling.

    ``random`` decides everything that reality leaves open. ``has_jumped``: the
    wall clock was moved. ``longest_event_s`` is the longest time that an event took by reading the clock, without what
    plugins spent in it.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.events = 0
        self.has_jumped = False
        self.longest_event_s = 0.0
        self._now_s = self._spent_s = 0.0
        self._wall_offset_ms = BEGINNING_MS
        self._reading_cost_s = self.random.choice(_READING_COSTS)
        self._due: list[tuple[float, int, WorldEvent | Callable[[], None]]] = []
        self._order = 0

    @property
    def now_s(self) -> float:
        """Seconds since the run began; looking at them takes no time."""
        return self._now_s

    def read_clock(self) -> float:
        """Return monotonic seconds, as code that measures its own work sees them: a reading takes time."""
        self._now_s += self._reading_cost_s
        return self._now_s

    def make_clock_dear(self) -> None:
        """Let each reading of the clock cost the most, as the seed may also choose."""
        self._reading_cost_s = _READING_COSTS[-1]

    def spend(self, seconds: float) -> None:
        """Let time pass within a call of a plugin, for which the turn that made it is not to blame."""
        self._now_s += seconds
        self._spent_s += seconds

    def wall_ms(self) -> int:
        """Return milliseconds since the epoch."""
        return self._wall_offset_ms + int(self._now_s * 1000)

    def jump(self, seconds: float) -> None:
        """Move the wall clock, as an administrator or a time server does; monotonic time does not move."""
        self._wall_offset_ms += round(seconds * 1000)
        self.has_jumped = True

    def schedule(self, delay_s: float, call: Callable[[], None]) -> WorldEvent:
        """Make a call after a delay."""
        at_s = self._now_s + delay_s if delay_s > 0.0 else self._now_s
        event = WorldEvent(at_s, call)
        self._order += 1
        heappush(self._due, (at_s, self._order, event))
        return event

    def call_later(self, delay_s: float, call: Callable[[], None]) -> None:
        """Make a call after a delay; it cannot be cancelled. Three of four events are pieces of the network's bytes."""
        self._order += 1
        heappush(self._due, (self._now_s + delay_s if delay_s > 0.0 else self._now_s, self._order, call))

    def run(self, is_over: Callable[[], bool], until_s: float) -> bool:
        """Let events happen until ``is_over``; return false if the time ``until_s`` came before that."""
        due = self._due
        while not is_over():
            if not due or due[0][0] > until_s:
                return False
            at_s, _, event = heappop(due)
            call: Callable[[], None] | None
            if isinstance(event, WorldEvent):
                call = event.call
                if call is None:
                    continue
                event.call = None
            else:
                call = event
            if at_s > self._now_s:
                self._now_s = at_s
            else:
                at_s = self._now_s
            self.events += 1
            spent_s = self._spent_s
            call()
            if self._now_s != at_s:
                took_s = self._now_s - self._spent_s - (at_s - spent_s)
                if took_s > self.longest_event_s:
                    self.longest_event_s = took_s
        return True
