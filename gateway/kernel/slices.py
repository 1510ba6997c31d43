"""Long work in short pieces, so that no client waits for it: the loop is held up for a slice and a step at most."""

from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary, ref

if TYPE_CHECKING:
    from gateway.kernel.ports import Clock

#: How long the long work of a node may go on at a stretch, in seconds; all of its jobs share one slice.
SLICE_S: Final = 0.005

#: How long jobs wait for the store before they look again, in seconds.
PAUSE_S: Final = 0.005


class Background:
    """The long jobs of one node. They take turns: each gets one slice, and then the next job does.

    While ``is_paused`` says so none gets any, because the store has too much to write. ``on_slice`` is called with the
    name of a job that used up a slice, and the seconds that it took.
    """

    def __init__(self, clock: "Clock") -> None:
        self._clock = ref(clock)  # found by its clock, it must not keep it
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
        if len(self._jobs) == 1 and not self._is_working and (clock := self._clock()) is not None:
            clock.call_later(0, self._work)

    def _work(self) -> None:
        """Give the jobs one slice together."""
        clock = self._clock()
        if clock is None:
            return
        if self.is_paused():
            clock.call_later(PAUSE_S, self._work)
            return
        starts_s = clock.monotonic_s()
        ends_s = starts_s + SLICE_S
        self._is_working = True
        try:
            while self._jobs:
                work = self._jobs.popleft()
                if not _is_done(clock, work, ends_s):
                    self._jobs.append(work)
                    self.on_slice(_name_of(work), clock.monotonic_s() - starts_s)
                    break
        finally:  # what a job raises is its own affair: it is over, and the others go on
            self._is_working = False
            if self._jobs:
                clock.call_later(0, self._work)


_background_by_clock: "WeakKeyDictionary[Clock, Background]" = WeakKeyDictionary()


def background(clock: "Clock") -> Background:
    """Return the long jobs of the node that lives by this clock."""
    found = _background_by_clock.get(clock)
    if found is None:
        found = _background_by_clock[clock] = Background(clock)
    return found


def in_slices(clock: "Clock", work: Iterator[None]) -> None:
    """Do some work in slices, beside the other long work of the node. The work yields after each step."""
    background(clock).add(work)


def in_later_slices(clock: "Clock", work: Iterator[None]) -> None:
    """Do some work in slices of turns to come, beside the other long work of the node: for what a timer starts."""
    background(clock).add_later(work)


def _is_done(clock: "Clock", work: Iterator[None], ends_s: float) -> bool:
    """Do the steps of a job until the slice ends; return whether none are left."""
    return all(clock.monotonic_s() < ends_s for _ in work)


def _name_of(work: Iterator[None]) -> str:
    return getattr(work, "__qualname__", type(work).__name__)
