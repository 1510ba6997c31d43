"""Threads of a simulation: greenlets that one real thread runs, in an order that a seed decides.

A thread runs until it waits or reaches a switch point, such as an operation of the disk. Then it is continued by a call
that the world scheduled, after a random time. Outside of these threads is the *kernel*: all code that the world runs
itself. If the kernel waits, for example for the end of a thread, the threads run until it can continue, and the
virtual time stands still.
"""

from collections import deque
from collections.abc import Callable
from queue import Empty
from random import Random
from typing import Any, Final, Generic, NoReturn, TypeVar

from greenlet import GreenletExit, getcurrent, greenlet

T = TypeVar("T")

#: The longest time of a step of a thread, in seconds of virtual time.
LONGEST_STEP_S: Final = 0.0005

#: How often a switch point of the kernel lets threads run, as real threads would meanwhile.
_SHARE_OF_INTERLEAVED: Final = 0.1
_MOST_INTERLEAVED: Final = 3


class ProcessKilled(BaseException):
    """The process was killed: its kernel's code ends here, without any further effect on the disk."""


class SimulatedThread:
    """One thread. ``due_s`` is the time at which it continues; ``None`` while it waits for another thread."""

    def __init__(self, threads: "SimulatedThreads", run: Callable[[], None], name: str) -> None:
        self.name = name
        self.is_over = False
        self.due_s: float | None = None
        self.turn = 0
        self.greenlet = greenlet(self._run)
        self.waiting_for: deque[SimulatedThread] | None = None
        self._threads = threads
        self._target = run
        self._joining: deque[SimulatedThread] = deque()

    def join(self) -> None:
        """Wait for the end of the thread. :raises ProcessKilled: when its process was killed."""
        while not self.is_over or self._threads.is_killed:
            self._threads.wait(self._joining, None, lambda: self.is_over)

    def _run(self) -> None:
        try:
            self._target()
        finally:
            self.is_over = True
            self._threads.wake_all(self._joining)


class SimulatedThreads:
    """The threads of one process.

    :param schedule: the world's ``schedule(delay_s, call)``: makes a call after a delay of virtual time.
    :param now_s: returns the virtual time in seconds.
    :param random: decides the order of steps.
    """

    def __init__(
        self, schedule: Callable[[float, Callable[[], None]], object], now_s: Callable[[], float], random: Random
    ) -> None:
        self._schedule = schedule
        self._now_s = now_s
        self._random = random
        self._threads: list[SimulatedThread] = []
        self._current: SimulatedThread | None = None
        self.is_killed = False

    # What the store uses

    def start(self, run: Callable[[], None], name: str) -> SimulatedThread:
        """Start a thread; its first step comes later."""
        thread = SimulatedThread(self, run, name)
        self._threads.append(thread)
        self._continue_later(thread)
        return thread

    def queue(self) -> "SimulatedQueue[Any]":
        """Return a new queue."""
        return SimulatedQueue(self)

    def event(self) -> "SimulatedEvent":
        """Return a new event, not set."""
        return SimulatedEvent(self)

    def lock(self) -> "SimulatedLock":
        """Return a new lock."""
        return SimulatedLock(self)

    def bursts(self) -> "SimulatedBursts":
        """Return bursts that begin at once."""
        return SimulatedBursts()

    def give_way(self) -> None:
        """Let other threads run: a switch point."""
        self.pause()

    def monotonic_s(self) -> float:
        """Return the virtual time."""
        return self._now_s()

    # What the world uses

    def kill(self) -> None:
        """End every thread where it is, as ``kill -9`` does; the process must not use the disk any more."""
        self.is_killed = True
        killer = self._current
        for thread in self._threads:
            if not thread.is_over and thread.greenlet is not getcurrent():
                self._current = thread
                thread.greenlet.parent = getcurrent()
                thread.greenlet.throw(GreenletExit)
            thread.is_over = True
        self._current = killer
        self._threads.clear()

    @property
    def names(self) -> list[str]:
        """The names of the threads that have not ended."""
        return [thread.name for thread in self._threads if not thread.is_over]

    # What the disk uses

    @property
    def is_in_thread(self) -> bool:
        """Whether one of the threads makes this call; otherwise the kernel does."""
        thread = self._current
        return thread is not None and getcurrent() is thread.greenlet

    def pause(self, delay_s: float = 0.0) -> None:
        """Let the other threads and the kernel run: a switch point.

        A thread continues after a delay, in seconds, and the random time of a step. The kernel continues at once.
        """
        thread = self._current
        if thread is not None and getcurrent() is thread.greenlet:
            self._continue_later(thread, delay_s)
            self._switch(thread)
        else:
            self.interrupt()

    def interrupt(self) -> None:
        """Let threads run for a few steps, sometimes, if the kernel makes this call."""
        if self._current is None and self._random.random() < _SHARE_OF_INTERLEAVED:
            for _ in range(self._random.randint(1, _MOST_INTERLEAVED)):
                self._run_one(self._now_s() + LONGEST_STEP_S)

    # Waiting

    def wait(
        self, waiting: deque[SimulatedThread], timeout_s: float | None, is_over: Callable[[], bool] = lambda: False
    ) -> bool:
        """Wait until ``wake`` takes this thread from ``waiting``; return ``False`` after a timeout.

        The kernel waits until ``is_over`` returns ``True``.

        :raises ProcessKilled: in the kernel, when the process was killed.
        """
        thread = self._current
        if thread is None or getcurrent() is not thread.greenlet:
            return self._wait_in_kernel(timeout_s, is_over)
        if self.is_killed:
            raise GreenletExit
        waiting.append(thread)
        thread.waiting_for = waiting
        if timeout_s is not None:
            self._continue_later(thread, timeout_s)
        self._switch(thread)
        if thread.waiting_for is None:
            return True
        thread.waiting_for = None
        waiting.remove(thread)
        return False

    def wake(self, waiting: deque[SimulatedThread]) -> None:
        """Let the first waiting thread continue, if there is one."""
        if waiting:
            thread = waiting.popleft()
            thread.waiting_for = None
            self._continue_later(thread)

    def wake_all(self, waiting: deque[SimulatedThread]) -> None:
        """Let every waiting thread continue."""
        while waiting:
            self.wake(waiting)

    def _wait_in_kernel(self, timeout_s: float | None, is_over: Callable[[], bool]) -> bool:
        until_s = float("inf") if timeout_s is None else self._now_s() + timeout_s
        while not is_over() or self.is_killed:
            if self.is_killed:
                raise ProcessKilled
            if not self._run_one(until_s):
                if timeout_s is None:
                    self._deadlock()
                return False
        return True

    def _deadlock(self) -> NoReturn:
        raise RuntimeError(f"the kernel waits for threads that all wait: {', '.join(self.names) or 'none is left'}")

    # Steps

    def _continue_later(self, thread: SimulatedThread, delay_s: float = 0.0) -> None:
        if self.is_killed:
            return
        thread.turn = turn = thread.turn + 1
        delay_s += self._random.random() * LONGEST_STEP_S
        thread.due_s = self._now_s() + delay_s
        self._schedule(delay_s, lambda: self._continue(thread, turn))

    def _continue(self, thread: SimulatedThread, turn: int) -> None:
        """Run a thread until it waits; do nothing if it was continued since this call was scheduled."""
        if thread.turn != turn or thread.is_over or self.is_killed:
            return
        thread.turn += 1
        thread.due_s = None
        outer, self._current = self._current, thread
        thread.greenlet.parent = getcurrent()
        try:
            thread.greenlet.switch()
        finally:
            self._current = outer
        if thread.is_over and thread in self._threads:
            self._threads.remove(thread)

    def _switch(self, thread: SimulatedThread) -> None:
        if self.is_killed:
            raise GreenletExit
        parent = thread.greenlet.parent
        assert parent is not None
        parent.switch()

    def _run_one(self, until_s: float) -> bool:
        """Continue one thread that is due until then: any of those whose step could end now, else the first."""
        due = [thread for thread in self._threads if thread.due_s is not None and thread.due_s <= until_s]
        if not due:
            return False
        soon_s = self._now_s() + LONGEST_STEP_S
        soon = [thread for thread in due if thread.due_s is not None and thread.due_s <= soon_s]
        thread = self._random.choice(soon) if soon else min(due, key=lambda each: each.due_s or 0.0)
        self._continue(thread, thread.turn)
        return True


class SimulatedQueue(Generic[T]):
    """A queue between threads, as ``queue.SimpleQueue``."""

    def __init__(self, threads: SimulatedThreads) -> None:
        self._threads = threads
        self._items: deque[T] = deque()
        self._waiting: deque[SimulatedThread] = deque()

    def put(self, item: T) -> None:
        """Add an item."""
        self._items.append(item)
        if self._waiting:
            self._threads.wake(self._waiting)
        self._threads.interrupt()

    def get(self, block: bool = True, timeout: float | None = None) -> T:
        """Remove and return the first item, waiting at most ``timeout`` seconds. :raises queue.Empty: without one."""
        while not self._items:
            if not block or not self._threads.wait(self._waiting, timeout, lambda: bool(self._items)):
                raise Empty
        return self._items.popleft()

    def get_nowait(self) -> T:
        """Remove and return the first item. :raises queue.Empty: without one."""
        return self.get(block=False)


class SimulatedEvent:
    """A flag that threads wait for, as ``threading.Event``."""

    def __init__(self, threads: SimulatedThreads) -> None:
        self._threads = threads
        self._is_set = False
        self._waiting: deque[SimulatedThread] = deque()

    def set(self) -> None:
        """Set the flag."""
        self._is_set = True
        self._threads.wake_all(self._waiting)

    def clear(self) -> None:
        """Reset the flag."""
        self._is_set = False

    def is_set(self) -> bool:
        """Return the flag."""
        return self._is_set

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the flag, at most ``timeout`` seconds; return it."""
        if not self._is_set:
            self._threads.wait(self._waiting, timeout, self.is_set)
        return self._is_set


class SimulatedLock:
    """A lock, held during a ``with`` block."""

    def __init__(self, threads: SimulatedThreads) -> None:
        self._threads = threads
        self._is_held = False
        self._waiting: deque[SimulatedThread] = deque()

    def __enter__(self) -> None:
        while self._is_held:
            self._threads.wait(self._waiting, None, lambda: not self._is_held)
        self._is_held = True

    def __exit__(self, *error: object) -> None:
        self._is_held = False
        self._threads.wake(self._waiting)


class SimulatedBursts:
    """Bursts of calls to LMDB: they begin at once, because one thread runs at a time."""

    def begin(self) -> bool:
        """Begin at once."""
        return True

    def end(self, has_begun: bool) -> None:
        """Do nothing."""
