"""A pool of threads that runs work at once, in the caller's thread."""

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any


class InlinePool(Executor):
    """Runs each call at once; while it ``is_slow``, calls wait for ``work``."""

    def __init__(self) -> None:
        self.is_slow = False
        self._waiting: list[Callable[[], None]] = []

    def submit(self, work: Callable[..., Any], /, *arguments: Any, **options: Any) -> "Future[Any]":
        future: Future[Any] = Future()

        def run() -> None:
            try:
                future.set_result(work(*arguments, **options))
            except Exception as error:
                future.set_exception(error)

        if self.is_slow:
            self._waiting.append(run)
        else:
            run()
        return future

    def work(self) -> None:
        """Run the calls that wait; later ones run at once again."""
        self.is_slow = False
        waiting, self._waiting = self._waiting, []
        for run in waiting:
            run()
