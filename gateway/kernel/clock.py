"""The clock of a node: time, scheduled calls, and long jobs in short slices, so that clients do not wait for them."""

from collections import deque
from collections.abc import Callable, Iterator
from typing import Final, Protocol, TypeVar

from gateway.kernel.acting import ActingUser, RequestSource

T = TypeVar("T")

#: The length of a slice, which all long jobs of a node share, in seconds.
SLICE_S: Final = 0.005

#: Objects that are freed between two readings of the clock.
_FREED_IN_STEP: Final = 64

#: The time between two checks whether jobs may run, while the store is busy, in seconds.
PAUSE_S: Final = 0.005


class Timer(Protocol):
    """A scheduled call that can be cancelled."""

    def cancel(self) -> None:
        """Cancel the call; harmless after it was made."""
        ...


class Clock(Protocol):
    """Time, scheduled calls, and ``background``: the long jobs of the node."""

    background: "Background"

    def wall_ms(self) -> int:
        """Milliseconds since the epoch."""
        ...

    def monotonic_s(self) -> float:
        """Seconds that never decrease; only differences are meaningful."""
        ...

    def call_later(self, delay_s: float, call: Callable[[], None]) -> Timer:
        """Call once, on the kernel's thread, no earlier than ``delay_s`` seconds from now."""
        ...


class Background:
    """The long jobs of one node, served round robin: one job runs per slice, then the next one.

    A job yields after each step. While ``is_paused`` returns True, because the store has too much to write, no job
    runs. ``on_slice`` is called with the name of a job that used up a slice, and its seconds. ``after_slice`` is called
    after a slice that is not part of a client's request. A job acts for the user who was ``acting`` when it was added.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._jobs: deque[tuple[Iterator[None], RequestSource | None]] = deque()
        self.acting = ActingUser()
        self._is_working = False
        self.is_paused: Callable[[], bool] = lambda: False
        self.on_slice: Callable[[str, float], None] = lambda job, seconds: None
        self.after_slice: Callable[[], object] = lambda: None

    def __len__(self) -> int:
        """The number of unfinished jobs."""
        return len(self._jobs)

    def add(self, work: Iterator[None]) -> None:
        """Run the first slice of a job now, unless other jobs wait; the rest runs in later turns."""
        self._jobs.append((work, self.acting.source))
        if len(self._jobs) == 1 and not self._is_working:  # else a call is already scheduled
            self._work()

    def add_later(self, work: Iterator[None]) -> None:
        """Run a job in later turns only, so that many timers that expire together do not share one turn."""
        self._jobs.append((work, self.acting.source))
        if len(self._jobs) == 1 and not self._is_working:
            self._clock.call_later(0, self._work_in_turn)

    def _work_in_turn(self) -> None:
        self._work()
        self.after_slice()

    def _work(self) -> None:
        """Run jobs for one slice."""
        if self.is_paused():
            self._clock.call_later(PAUSE_S, self._work_in_turn)
            return
        starts_s = self._clock.monotonic_s()
        ends_s = starts_s + SLICE_S
        self._is_working = True
        former = self.acting.source
        try:
            while self._jobs:
                work, self.acting.source = self._jobs.popleft()
                if not self._is_done(work, ends_s):
                    self._jobs.append((work, self.acting.source))
                    self.on_slice(_name_of(work), self._clock.monotonic_s() - starts_s)
                    break
        finally:  # a job that raises is removed; the others continue
            self._is_working = False
            self.acting.source = former
            if self._jobs:
                self._clock.call_later(0, self._work_in_turn)

    def _is_done(self, work: Iterator[None], ends_s: float) -> bool:
        """Run the steps of a job until the slice ends; return whether the job is finished."""
        return all(self._clock.monotonic_s() < ends_s for _ in work)


def drained(items: list[T]) -> Iterator[T]:
    """Yield the items of a list in order, and empty it, so that a long job frees them one by one.

    A job that keeps them until its end frees all of them in its last step: 60 ms for 100,000 queues.
    """
    items.reverse()
    while items:
        yield items.pop()


def freeing(items: list[T]) -> Iterator[None]:
    """Return the steps that empty a list, as a job: to free 100,000 messages at once takes 30 ms."""
    for number, _ in enumerate(drained(items)):
        if not number % _FREED_IN_STEP:
            yield


def _name_of(work: Iterator[None]) -> str:
    return getattr(work, "__qualname__", type(work).__name__)
