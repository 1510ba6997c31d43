"""The threads that write and read staged rows, so that the event loop does not wait for the disk."""

from collections.abc import Callable
from typing import Protocol, TypeVar

from twisted.internet.defer import Deferred, maybeDeferred

from gateway.management.disk_thread import DiskThread

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
        self._writer = DiskThread("staging-writer", call_in_kernel)
        self._reader = DiskThread("staging-reader", call_in_kernel)

    def write(self, work: Callable[[], T]) -> "Deferred[T]":
        """Run work that writes or removes, after all such work before it."""
        return self._writer.run(work)

    def read(self, work: Callable[[], T]) -> "Deferred[T]":
        """Run work that reads, after all such work before it."""
        return self._reader.run(work)

    def stop(self) -> None:
        """Drop the work that has not begun."""
        self._writer.stop()
        self._reader.stop()


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
