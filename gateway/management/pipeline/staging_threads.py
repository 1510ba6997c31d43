"""The threads that write and read staged rows, so that the event loop does not wait for the disk."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Protocol, TypeVar

from twisted.internet.defer import Deferred, maybeDeferred

T = TypeVar("T")


class StagingThreads(Protocol):
    """Runs blocking work in its order: writing and removing in one thread, reading in another."""

    def write(self, work: Callable[[], T]) -> "Deferred[T]":
        """Run work that writes or removes, after all such work before it."""
        ...

    def read(self, work: Callable[[], T]) -> "Deferred[T]":
        """Run work that reads, after all such work before it."""
        ...

    def stop(self) -> None:
        """Drop the work that has not begun."""
        ...


class DiskThreads:
    """Two threads, started when they are needed.

    ``call_in_kernel`` runs a call on the kernel's thread; it is called from any thread.
    """

    def __init__(self, call_in_kernel: Callable[[Callable[[], None]], object]) -> None:
        self._call_in_kernel = call_in_kernel
        self._writer = ThreadPoolExecutor(1, "staging-writer")
        self._reader = ThreadPoolExecutor(1, "staging-reader")

    def write(self, work: Callable[[], T]) -> "Deferred[T]":
        """Run work that writes or removes, after all such work before it."""
        return self._run(self._writer, work)

    def read(self, work: Callable[[], T]) -> "Deferred[T]":
        """Run work that reads, after all such work before it."""
        return self._run(self._reader, work)

    def stop(self) -> None:
        """Drop the work that has not begun."""
        for pool in (self._writer, self._reader):
            pool.shutdown(wait=False, cancel_futures=True)

    def _run(self, pool: ThreadPoolExecutor, work: Callable[[], T]) -> "Deferred[T]":
        result: Deferred[T] = Deferred(canceller=lambda _: None)

        def finished(future: "Future[T]") -> None:
            if not future.cancelled():
                self._call_in_kernel(lambda: _fire(result, future))

        with suppress(RuntimeError):  # the broker stops: there is no answer to wait for
            pool.submit(work).add_done_callback(finished)
        return result


class InlineThreads:
    """Runs the work at once. For tests."""

    def write(self, work: Callable[[], T]) -> "Deferred[T]":
        """Run work that writes or removes."""
        return maybeDeferred(work)

    def read(self, work: Callable[[], T]) -> "Deferred[T]":
        """Run work that reads."""
        return maybeDeferred(work)

    def stop(self) -> None:
        """Do nothing."""


def _fire(result: "Deferred[T]", future: "Future[T]") -> None:
    if result.called:
        return
    error = future.exception()
    if error is None:
        result.callback(future.result())
    else:
        result.errback(error)
