"""A reactor that a test drives itself, so that it can wait for coroutines with a time limit."""

import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from twisted.internet import reactor as installed_reactor
from twisted.internet.defer import Deferred
from twisted.internet.epollreactor import EPollReactor

T = TypeVar("T")

#: The time limit of a wait in seconds.
TIMEOUT_S = 60.0


class EventLoop:
    """Owns a reactor, which works only while a test waits."""

    def __init__(self) -> None:
        self.reactor: Any = EPollReactor()  # type: ignore[no-untyped-call]  # Twisted's
        #: The TLS of Twisted delays small writes by calls of the installed reactor, whichever one it has.
        self._installed: Any = installed_reactor
        self.reactor.startRunning(installSignalHandlers=False)

    def run(self, work: Coroutine[Any, Any, T] | Awaitable[T], timeout_s: float = TIMEOUT_S) -> T:
        """Return the result of a coroutine or Deferred, or raise its error."""
        deferred = work if isinstance(work, Deferred) else Deferred.fromCoroutine(work)  # type: ignore[arg-type]
        results: list[Any] = []
        deferred.addBoth(results.append)
        self.until(lambda: bool(results), timeout_s)
        (result,) = results
        if hasattr(result, "raiseException"):
            result.raiseException()
        value: T = result
        return value

    def until(self, condition: Callable[[], object], timeout_s: float = TIMEOUT_S) -> None:
        """Work until a condition is true."""
        deadline = time.monotonic() + timeout_s
        while not condition():
            assert time.monotonic() < deadline, "the condition was not met in time"
            self.turn()

    def turn(self) -> None:
        """Work for one turn: up to 20 ms if there is nothing to do."""
        self.reactor.runUntilCurrent()
        self._installed.runUntilCurrent()
        due = self.reactor.timeout()
        self.reactor.doIteration(0.02 if due is None else min(due, 0.02))

    def close(self) -> None:
        """Stop the reactor and its threads."""
        self.reactor.fireSystemEvent("shutdown")
        for _ in range(3):
            self.turn()
        for call in self.reactor.getDelayedCalls():
            call.cancel()
        self.reactor.disconnectAll()
