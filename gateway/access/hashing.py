"""Threads for password hashing, which is too slow for the kernel's thread, and a synchronous substitute."""

import contextlib
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, Protocol, TypeVar

from gateway.logs import StructuredLog

_log: Final = StructuredLog("access")

#: The niceness of these threads relative to the kernel's: hashes are never urgent.
_NICENESS: Final = 10

T = TypeVar("T")


class Workers(Protocol):
    """Runs slow work and calls back on the kernel's thread."""

    def submit(self, work: Callable[[], T], done: Callable[[T], None], failed: Callable[[], None]) -> bool:
        """Run ``work``, then call ``done`` on the kernel's thread, or ``failed`` if it raised an exception.

        Return ``False`` if the queue is full; then neither is called.
        """
        ...


class WorkerPool(Workers, Protocol):
    """Workers of a node. ``unfinished`` counts submitted work without an answer, ``refused`` refused work."""

    unfinished: int
    refused: int

    def stop(self) -> None:
        """Drop the work that has not started."""
        ...


class Inline:
    """Runs the work at once. For tests, tools and the start."""

    def submit(self, work: Callable[[], T], done: Callable[[T], None], failed: Callable[[], None]) -> bool:
        """Run ``work``, then call ``done``; what ``work`` raises is raised here."""
        done(work())
        return True


class HashingThreads:
    """A thread pool of low priority with a queue of at most ``max_waiting``.

    ``call_in_kernel`` runs a call on the kernel's thread; it is called from any thread.
    """

    def __init__(self, threads: int, max_waiting: int, call_in_kernel: Callable[[Callable[[], None]], object]) -> None:
        self._pool = ThreadPoolExecutor(threads, "passwords", initializer=_lower_priority)
        self._most = threads + max_waiting
        self._call_in_kernel = call_in_kernel
        self.unfinished = 0
        self.refused = 0

    def submit(self, work: Callable[[], T], done: Callable[[T], None], failed: Callable[[], None]) -> bool:
        """Run ``work`` in a thread; ``done`` or ``failed`` follows on the kernel's thread, which calls this too."""
        if self.unfinished >= self._most:
            self.refused += 1
            return False

        def finished(future: "Future[T]") -> None:
            if not future.cancelled():
                self._call_in_kernel(lambda: self._finish(future, done, failed))

        try:
            future = self._pool.submit(work)
        except RuntimeError as error:  # the system starts no more threads
            _log.error("hashing a password failed", error=str(error))
            self.refused += 1
            return False
        self.unfinished += 1
        future.add_done_callback(finished)
        return True

    def stop(self) -> None:
        """Finish running work and drop queued work."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _finish(self, future: "Future[T]", done: Callable[[T], None], failed: Callable[[], None]) -> None:
        self.unfinished -= 1
        error = future.exception()
        if error is not None:
            _log.error("hashing a password failed", error=type(error).__name__)
            failed()
        else:
            done(future.result())


def _lower_priority() -> None:
    """Lower the priority of this thread only, where the system supports it."""
    with contextlib.suppress(OSError, AttributeError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
