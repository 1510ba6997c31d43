"""The times of the calls of interceptors: charged to the budget of the turn, and reported if they are long."""

from collections.abc import Callable, Sequence
from typing import Final

from gateway.kernel.budget import SLOW_S, WORK_PER_CLOCK_READING, Suspect, TurnBudget
from gateway.kernel.faults import Faults
from gateway.kernel.plugin_times import CALL_LIMIT_S, Overrun, PartTimes

#: The kind of the faults of interceptors.
FAULT: Final = "interceptor"

#: Messages whose calls are timed after a slow one, to find out whether an interceptor is slow again.
_SINGLE: Final = 1000

#: One of this many messages has its calls timed in any case, for the statistics of each interceptor.
_SAMPLED: Final = 64

#: Calls for one message that take longer than this make the turn read its clock, in seconds; those for the next
#: message are timed too.
_NOTABLE_S: Final = 20e-6


class CallTimes(Suspect):
    """Times the interceptors of one chain of a virtual host, which are called for a ``purpose``: publish or delivery.

    Reading the clock takes as long as an interceptor that does little. So the calls are timed only for messages for
    which ``is_due``: a sample, those after a slow one, and all while the calls take notable time. ``until_due`` counts
    the messages before the next of these. ``is_timing`` is set between ``begin`` and ``end``. ``method`` is the name of
    the method that is called, ``part_times`` has the times of each interceptor.
    """

    __slots__ = (
        "_before_s",
        "_budget",
        "_faults",
        "_interceptors",
        "_purpose",
        "_reported",
        "_singles",
        "_starts_s",
        "_vhost",
        "is_timing",
        "method",
        "part_times",
        "until_due",
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
        self.is_timing = False
        self.method = method
        self.part_times = PartTimes(interceptors)
        self.until_due = 0
        self._singles = 0
        self._reported = False
        self._starts_s = self._before_s = 0.0
        self._budget = budget
        self._faults = faults
        self._vhost = vhost
        self._interceptors = tuple(interceptors)
        self._purpose = purpose

    def is_due(self) -> bool:
        """Count a message; return whether its calls are to be timed, from ``begin`` to ``end``."""
        self.until_due -= 1
        if self.until_due < 0:
            return True
        self._budget.suspect = self
        return False

    def was_slow(self, seconds: float) -> None:
        """Time the calls for the next messages, because one of the untimed calls may have taken ``seconds``."""
        self._singles, self.until_due = _SINGLE, 0
        self._report(self._interceptors, seconds, "messages through ")

    def begin(self) -> None:
        """Start timing the calls for a message."""
        self._starts_s = self._before_s = self._budget.monotonic_s()
        self._reported = False
        self.is_timing = True

    def called(self, interceptor: object) -> None:
        """Count a call; report it if it took long."""
        now_s = self._budget.monotonic_s()
        seconds = now_s - self._before_s
        self._before_s = now_s
        self.part_times.of(interceptor).add(seconds)
        if seconds > SLOW_S:
            self._reported = True
            self._report([interceptor], seconds)
        if seconds > CALL_LIMIT_S:
            self.contain(interceptor, Overrun(seconds), getattr(interceptor, self.method))

    def contain(self, interceptor: object, error: BaseException, function: Callable[..., object] | None = None) -> None:
        """Contain a fault of an interceptor.

        Event listeners may take long with the report, which is no time of the interceptors.
        """
        starts_s = self._budget.monotonic_s() if self.is_timing else 0.0
        self._faults.contain_in_part(FAULT, error, self._vhost, interceptor, function=function)
        if self.is_timing:
            self._before_s = self._budget.monotonic_s()
            self._starts_s += self._before_s - starts_s

    def end(self) -> None:
        """Charge the calls for a message, and report them if they took long together."""
        budget = self._budget
        seconds = budget.monotonic_s() - self._starts_s
        self.is_timing = False
        if seconds > SLOW_S:
            self._singles = _SINGLE
            if not self._reported:
                self._report(self._interceptors, seconds)
        if seconds >= _NOTABLE_S:
            budget.work += WORK_PER_CLOCK_READING
            self.until_due = 0
        elif self._singles:
            budget.work += 1
            self.until_due = 0
        else:
            budget.work += _SAMPLED  # for all messages up to the next sample
            self.until_due = _SAMPLED - 1
        if self._singles:
            self._singles -= 1

    def _report(self, interceptors: Sequence[object], seconds: float, beginning: str = "") -> None:
        """Report a slow call of one of these."""
        faults, vhost = self._faults, self._vhost
        what = f"{beginning}the interceptor{'' if len(interceptors) == 1 else 's'} "
        what += ", ".join([type(each).__qualname__ for each in interceptors])
        self._budget.on_slow(faults.cause(f"{what} for a {self._purpose}", vhost, *interceptors), seconds)
