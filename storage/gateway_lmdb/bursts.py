"""Bursts: two threads make many short calls to LMDB one after the other, instead of at the same time.

Each call to LMDB releases the interpreter's lock. If two threads make such calls at the same time, they hand that lock
over at nearly each of them, which takes several times as long as the call (docs/adr/0044).
"""

import threading
from typing import Final, Protocol

#: The longest wait for the other thread's burst, twice in one ``begin``, in seconds. A burst takes a tenth of that, but
#: longer when its pages have to be read from the disk: then both threads go on at the same time.
PATIENCE_S: Final = 0.0005


class Bursts(Protocol):
    """The bursts of two threads, which begin in turns. This saves time and excludes nothing."""

    def begin(self) -> bool:
        """Wait for the end of the other thread's burst, not longer than a millisecond; return whether it ended."""
        ...

    def end(self, has_begun: bool) -> None:
        """End a burst; ``has_begun`` is what ``begin`` returned."""
        ...


class SystemBursts:
    """Bursts of the system's threads.

    A thread that waits holds the ``_door``, so the other one cannot begin a second burst before it.
    """

    def __init__(self) -> None:
        self._door = threading.Lock()
        self._burst = threading.Lock()

    def begin(self) -> bool:
        """Wait for the end of the other thread's burst, not longer than a millisecond; return whether it ended."""
        if not self._door.acquire(timeout=PATIENCE_S):
            return False
        has_begun = self._burst.acquire(timeout=PATIENCE_S)
        self._door.release()
        return has_begun

    def end(self, has_begun: bool) -> None:
        """End a burst, if it has begun."""
        if has_begun:
            self._burst.release()


class NoBursts:
    """Bursts of threads that never run at the same time."""

    def begin(self) -> bool:
        """Begin at once."""
        return True

    def end(self, has_begun: bool) -> None:
        """Do nothing."""
