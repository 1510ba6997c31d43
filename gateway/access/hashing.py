"""Threads that hash passwords, so that the kernel's thread never does; and the same without threads."""

import contextlib
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, Protocol, TypeVar

from gateway.logs import StructuredLog

_log: Final = StructuredLog("access")

#: How much less than the kernel's thread these count for the system's scheduler: a hash is never urgent.
_NICENESS: Final = 10

T = TypeVar("T")


class Workers(Protocol):
    """Who does a piece of work that takes long, and tells the kernel's thread."""

    def submit(self, work: Callable[[], T], done: Callable[[T], None]) -> bool:
        """Do ``work``, then call ``done`` on the kernel's thread; ``False`` if too much waits and it is not done."""
        ...


class Inline:
    """Does the work at once. For tests, tools and the start."""

    def submit(self, work: Callable[[], T], done: Callable[[T], None]) -> bool:
        """Do it and say so."""
        done(work())
        return True


class HashingThreads:
    """A few threads of low priority. At most ``max_waiting`` pieces of work wait for one.

    ``call_in_kernel`` runs a call on the kernel's thread; it is called from any thread.
    """

    def __init__(self, threads: int, max_waiting: int, call_in_kernel: Callable[[Callable[[], None]], object]) -> None:
        self._pool = ThreadPoolExecutor(threads, "passwords", initializer=_lower_priority)
        self._most = threads + max_waiting
        self._call_in_kernel = call_in_kernel
        self.unfinished = 0
        self.refused = 0

    def submit(self, work: Callable[[], T], done: Callable[[T], None]) -> bool:
        """Let a thread do ``work``, then call ``done`` on the kernel's thread. Called on the kernel's thread."""
        if self.unfinished >= self._most:
            self.refused += 1
            return False
        self.unfinished += 1

        def finished(future: "Future[T]") -> None:
            if not future.cancelled():
                self._call_in_kernel(lambda: self._finish(future, done))

        self._pool.submit(work).add_done_callback(finished)
        return True

    def stop(self) -> None:
        """Let what runs end, and drop what waits."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _finish(self, future: "Future[T]", done: Callable[[T], None]) -> None:
        self.unfinished -= 1
        error = future.exception()
        if error is not None:
            _log.error("hashing a password failed", error=type(error).__name__)
            return
        done(future.result())


def _lower_priority() -> None:
    """Lower the priority of this thread alone, where the system can."""
    with contextlib.suppress(OSError, AttributeError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
