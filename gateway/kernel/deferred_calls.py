"""Calls that a turn has no time for: they run in slices, and the connections that caused them wait."""

from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from gateway.kernel.budget import PendingWork

if TYPE_CHECKING:
    from gateway.kernel.budget import TurnBudget
    from gateway.kernel.clock import Background


class DeferredCalls:
    """Runs calls in later turns, in the order in which they were added.

    One message to a fanout exchange may fill the memory of a thousand queues at once. Its publisher sends nothing
    further until all of them have paged their messages out, so the calls that wait are bounded.
    """

    __slots__ = ("_background", "_budget", "_calls", "_is_scheduled", "_work")

    def __init__(self, background: "Background", budget: "TurnBudget") -> None:
        self._background = background
        self._budget = budget
        self._calls: deque[Callable[[], None]] = deque()
        self._is_scheduled = False
        self._work = PendingWork()

    def __len__(self) -> int:
        """The number of calls that wait."""
        return len(self._calls)

    def add(self, call: Callable[[], None]) -> None:
        """Run a call in a later turn, and hold the input of the connection at hand until then."""
        self._calls.append(call)
        self.hold()
        if not self._is_scheduled:
            self._schedule()

    def hold(self) -> None:
        """Hold the input of the connection at hand until no call waits."""
        if self._budget.pending is None:
            self._budget.leave_pending(self._work)

    def _schedule(self) -> None:
        self._is_scheduled = True
        self._background.add_later(self._steps())

    def _steps(self) -> Iterator[None]:
        while self._calls:
            try:
                self._calls.popleft()()
            except Exception:  # ends this job; the other calls get a job of their own
                self._schedule()
                raise
            yield
        self._is_scheduled = False
        work, self._work = self._work, PendingWork()
        work.finish()
