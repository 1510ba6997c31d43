"""The times of the calls of interceptors: charged to the budget of the turn, and reported if they are long."""

from collections.abc import Callable, Sequence
from typing import Final

from gateway.kernel.budget import LOOK_EVERY, SLOW_S, TurnBudget
from gateway.kernel.faults import Faults
from gateway.kernel.plugin_times import CALL_LIMIT_S, Overrun, PartTimes

#: Messages whose calls are timed one by one after a slow message, to find out which interceptor is slow.
_SINGLE: Final = 1000

#: One of this many messages has its calls timed one by one in any case, for the statistics of each interceptor.
_SAMPLED: Final = 64

#: Calls for one message that take longer than this make the turn read its clock, in seconds.
_NOTABLE_S: Final = 20e-6


class CallTimes:
    """Times the interceptors of one chain of a virtual host, which are called for a ``purpose``: publish or delivery.

    Reading the clock takes as long as an interceptor that does little. So the calls for a message are timed together,
    and one by one only for a sample and for the messages after a slow one, while ``are_single``. ``method`` is the name
    of the method that is called, ``part_times`` has the times of each interceptor.
    """

    __slots__ = (
        "_before_s",
        "_budget",
        "_faults",
        "_interceptors",
        "_left",
        "_purpose",
        "_starts_s",
        "_until_sample",
        "_vhost",
        "are_single",
        "method",
        "part_times",
    )

    def __init__(
        self,
        budget: TurnBudget,
        faults: Faults,
        vhost: str,
        interceptors: Sequence[object],
        purpose: str,
        method: str,
    ) -> None:
        self.are_single = False
        self.method = method
        self.part_times = PartTimes(interceptors)
        self._left = 0
        self._until_sample = 1
        self._starts_s = self._before_s = 0.0
        self._budget = budget
        self._faults = faults
        self._vhost = vhost
        self._interceptors = tuple(interceptors)
        self._purpose = purpose

    def begin(self) -> None:
        """Start timing the calls for a message."""
        self._starts_s = self._before_s = self._budget.monotonic_s()

    def called(self, interceptor: object) -> None:
        """Count a call; report it if it took long."""
        now_s = self._budget.monotonic_s()
        seconds = now_s - self._before_s
        self._before_s = now_s
        self.part_times.of(interceptor).add(seconds)
        if seconds > SLOW_S:
            self._report([interceptor], seconds)
        if seconds > CALL_LIMIT_S:
            function: Callable[..., object] = getattr(interceptor, self.method)
            error = Overrun(seconds)
            self._faults.contain_in_part("interceptor", error, self._vhost, interceptor, function=function)

    def end(self) -> None:
        """Charge the calls for a message, and report them if they took long."""
        budget = self._budget
        seconds = budget.monotonic_s() - self._starts_s
        budget.work += 1 if seconds < _NOTABLE_S else LOOK_EVERY
        self._until_sample -= 1
        if self.are_single:
            self._left -= 1
            self.are_single = self._left > 0
        elif seconds > SLOW_S:
            self.are_single, self._left = True, _SINGLE
            self._report(self._interceptors, seconds)
        elif self._until_sample <= 0:
            self.are_single, self._until_sample = True, _SAMPLED

    def _report(self, interceptors: Sequence[object], seconds: float) -> None:
        """Report a slow call of one of these."""
        faults, vhost = self._faults, self._vhost
        what = f"the interceptor{'' if len(interceptors) == 1 else 's'} "
        what += ", ".join([type(each).__qualname__ for each in interceptors])
        self._budget.on_slow(faults.cause(f"{what} for a {self._purpose}", vhost, *interceptors), seconds)
