"""A thread for work that waits for the disk, so that the event loop does not."""

from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

from twisted.internet.defer import Deferred

T = TypeVar("T")


class DiskThread:
    """Runs work in its order, in a thread that starts with the first of it.

    ``call_in_kernel`` runs a call on the kernel's thread; it is called from any thread.
    """

    def __init__(
        self, name: str, call_in_kernel: Callable[[Callable[[], None]], object], pool: Executor | None = None
    ) -> None:
        self._call_in_kernel = call_in_kernel
        self._pool = pool or ThreadPoolExecutor(1, name)

    def run(self, work: Callable[[], T]) -> "Deferred[T]":
        """Run work after all of it before; return its result, which is called back on the kernel's thread."""
        result: Deferred[T] = Deferred(canceller=lambda _: None)

        def finished(future: "Future[T]") -> None:
            if not future.cancelled():
                self._call_in_kernel(lambda: _fire(result, future))

        with suppress(RuntimeError):  # the broker stops: there is no answer to wait for
            self._pool.submit(work).add_done_callback(finished)
        return result

    def wait_for(self, work: Callable[[], T], timeout_s: float) -> T:
        """Run work after all of it before, and wait for its result.

        :raises TimeoutError: after the time limit. :raises RuntimeError: if the thread was stopped.
        """
        return self._pool.submit(work).result(timeout_s)

    def stop(self) -> None:
        """Drop the work that has not begun."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def _fire(result: "Deferred[T]", future: "Future[T]") -> None:
    if result.called:
        return
    error = future.exception()
    if error is None:
        result.callback(future.result())
    else:
        result.errback(error)
