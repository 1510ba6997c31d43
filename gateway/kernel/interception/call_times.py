"""The times of the calls of interceptors: charged to the budget of the turn, and reported if they are long."""

from collections.abc import Sequence
from typing import Final

from gateway.kernel.budget import LOOK_EVERY, SLOW_S, TurnBudget

#: Messages whose calls are timed one by one after a slow message, to find out which interceptor is slow.
_SINGLE: Final = 1000

#: Calls for one message that take longer than this make the turn read its clock, in seconds.
_NOTABLE_S: Final = 20e-6


class CallTimes:
    """Times the interceptors of one chain, which are called for a ``purpose``: a publish or a delivery.

    Reading the clock takes as long as an interceptor that does little. So the calls for a message are timed together,
    and one by one only for the messages after a slow one, while ``are_single``.
    """

    __slots__ = ("_before_s", "_budget", "_left", "_names", "_purpose", "_starts_s", "are_single")

    def __init__(self, budget: TurnBudget, interceptors: Sequence[object], purpose: str) -> None:
        self.are_single = False
        self._left = 0
        self._starts_s = self._before_s = 0.0
        self._budget = budget
        self._names = [type(interceptor).__qualname__ for interceptor in interceptors]
        self._purpose = purpose

    def begin(self) -> None:
        """Start timing the calls for a message."""
        self._starts_s = self._before_s = self._budget.monotonic_s()

    def called(self, interceptor: object) -> None:
        """Report a call if it took long."""
        now_s = self._budget.monotonic_s()
        if now_s - self._before_s > SLOW_S:
            self._report(f"the interceptor {type(interceptor).__qualname__}", now_s - self._before_s)
        self._before_s = now_s

    def end(self) -> None:
        """Charge the calls for a message, and report them if they took long."""
        budget = self._budget
        seconds = budget.monotonic_s() - self._starts_s
        budget.work += 1 if seconds < _NOTABLE_S else LOOK_EVERY
        if self.are_single:
            self._left -= 1
            self.are_single = self._left > 0
        elif seconds > SLOW_S:
            self.are_single, self._left = True, _SINGLE
            names = self._names
            self._report(f"the interceptor{'' if len(names) == 1 else 's'} {', '.join(names)}", seconds)

    def _report(self, subject: str, seconds: float) -> None:
        self._budget.on_slow(f"{subject} for a {self._purpose}", seconds)
