"""The port through which the store uses threads and measures time, and its implementation by the system's threads.

A simulation gives the store threads whose steps a seed orders (``gateway.simulation.disk``).
"""

import queue
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Final, Protocol, TypeVar

from gateway_lmdb.bursts import Bursts, SystemBursts

T = TypeVar("T")


class Thread(Protocol):
    """A started thread."""

    def join(self) -> None:
        """Wait for its end."""
        ...


class Queue(Protocol[T]):
    """A queue between threads, as ``queue.SimpleQueue``."""

    def put(self, item: T) -> None:
        """Add an item; never waits."""
        ...

    def get(self, block: bool = True, timeout: float | None = None) -> T:
        """Remove and return the first item, waiting at most ``timeout`` seconds. :raises queue.Empty: without one."""
        ...

    def get_nowait(self) -> T:
        """Remove and return the first item. :raises queue.Empty: without one."""
        ...


class Event(Protocol):
    """A flag that threads wait for, as ``threading.Event``."""

    def set(self) -> None:
        """Set the flag."""
        ...

    def clear(self) -> None:
        """Reset the flag."""
        ...

    def is_set(self) -> bool:
        """Return the flag."""
        ...

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the flag, at most ``timeout`` seconds; return it."""
        ...


class Threads(Protocol):
    """Starts threads, and creates the queues and events that they share."""

    def start(self, run: Callable[[], None], name: str) -> Thread:
        """Start a thread that does not keep the process alive."""
        ...

    def queue(self) -> Queue[Any]:
        """Return a new queue."""
        ...

    def event(self) -> Event:
        """Return a new event, not set."""
        ...

    def lock(self) -> AbstractContextManager[Any]:
        """Return a new lock, held during a ``with`` block."""
        ...

    def bursts(self) -> Bursts:
        """Return the bursts of two threads."""
        ...

    def give_way(self) -> None:
        """Let another thread run Python code if one waits for that."""
        ...

    def monotonic_s(self) -> float:
        """Return the time in seconds since any moment."""
        ...


class SystemThreads:
    """The threads of the system."""

    def start(self, run: Callable[[], None], name: str) -> Thread:
        """Start a thread that does not keep the process alive."""
        thread = threading.Thread(target=run, name=name, daemon=True)
        thread.start()
        return thread

    def queue(self) -> Queue[Any]:
        """Return a new queue."""
        return queue.SimpleQueue()

    def event(self) -> Event:
        """Return a new event."""
        return threading.Event()

    def lock(self) -> AbstractContextManager[Any]:
        """Return a new lock."""
        return threading.Lock()

    def bursts(self) -> Bursts:
        """Return the bursts of two threads."""
        return SystemBursts()

    def give_way(self) -> None:
        """Release the interpreter's lock for a moment."""
        time.sleep(0)

    def monotonic_s(self) -> float:
        """Return the time of the system's monotonic clock."""
        return time.monotonic()


#: The threads that a store uses unless it gets others.
SYSTEM_THREADS: Final = SystemThreads()
