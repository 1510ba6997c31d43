"""The clock of a node: time, calls at a later time, and long work in short pieces, so that no client waits for it."""

from collections import deque
from collections.abc import Callable, Iterator
from typing import Final, Protocol

#: How long the long work of a node may go on at a stretch, in seconds; all of its jobs share one slice.
SLICE_S: Final = 0.005

#: How long jobs wait for the store before they look again, in seconds.
PAUSE_S: Final = 0.005


class Timer(Protocol):
    """A call that was scheduled and may still be cancelled."""

    def cancel(self) -> None:
        """Cancel the call. Harmless when it was made already."""
        ...


class Clock(Protocol):
    """Time, calls at a later time, and ``background``: the long jobs of the node that lives by this clock."""

    background: "Background"

    def wall_ms(self) -> int:
        """Milliseconds since the epoch, as a calendar would show."""
        ...

    def monotonic_s(self) -> float:
        """Seconds that never run backwards; only differences mean something."""
        ...

    def call_later(self, delay_s: float, call: Callable[[], None]) -> Timer:
        """Call once, on the kernel's thread, no earlier than ``delay_s`` seconds from now."""
        ...


class Background:
    """The long jobs of one node. They take turns: each gets one slice, and then the next job does.

    A job yields after each step. While ``is_paused`` returns True no job gets a slice, because the store has too much
    to write. ``on_slice`` is called with the name of a job that used up a slice, and the seconds that it took.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._jobs: deque[Iterator[None]] = deque()
        self._is_working = False
        self.is_paused: Callable[[], bool] = lambda: False
        self.on_slice: Callable[[str, float], None] = lambda job, seconds: None

    def __len__(self) -> int:
        """How many jobs wait for their next slice."""
        return len(self._jobs)

    def add(self, work: Iterator[None]) -> None:
        """Do the first slice of some work now, unless other work waits, and the rest in turns to come."""
        self._jobs.append(work)
        if len(self._jobs) == 1 and not self._is_working:  # else the next call is due already
            self._work()

    def add_later(self, work: Iterator[None]) -> None:
        """Do some work in turns to come: of the many timers of one moment none may do its part at once."""
        self._jobs.append(work)
        if len(self._jobs) == 1 and not self._is_working:
            self._clock.call_later(0, self._work)

    def _work(self) -> None:
        """Give the jobs one slice together."""
        if self.is_paused():
            self._clock.call_later(PAUSE_S, self._work)
            return
        starts_s = self._clock.monotonic_s()
        ends_s = starts_s + SLICE_S
        self._is_working = True
        try:
            while self._jobs:
                work = self._jobs.popleft()
                if not self._is_done(work, ends_s):
                    self._jobs.append(work)
                    self.on_slice(_name_of(work), self._clock.monotonic_s() - starts_s)
                    break
        finally:  # a job that raises is over; the others go on
            self._is_working = False
            if self._jobs:
                self._clock.call_later(0, self._work)

    def _is_done(self, work: Iterator[None], ends_s: float) -> bool:
        """Do the steps of a job until the slice ends; return whether none are left."""
        return all(self._clock.monotonic_s() < ends_s for _ in work)


def _name_of(work: Iterator[None]) -> str:
    return getattr(work, "__qualname__", type(work).__name__)
