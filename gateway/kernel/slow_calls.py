"""Reports of calls into plugins that took long: the cause of a long turn, and a fault of the plugin beyond a limit."""

from collections.abc import Callable

from gateway.kernel.budget import SLOW_S, TurnBudget
from gateway.kernel.faults import Faults
from gateway.kernel.plugin_times import CALL_LIMIT_S, Overrun


class SlowCalls:
    """Reports long calls of the components that plugins supply to one node. ``budget`` has the clock to time them."""

    __slots__ = ("_faults", "budget")

    def __init__(self, budget: TurnBudget, faults: Faults) -> None:
        self.budget = budget
        self._faults = faults

    def took(
        self, seconds: float, what: str, vhost: str, part: object, kind: str, function: Callable[..., object]
    ) -> None:
        """Name a call that took longer than ``SLOW_S``; count one beyond ``CALL_LIMIT_S`` as a fault of its ``kind``.

        ``what`` describes the call, as in ``the tracer Copies for a publish``; ``part`` is the component, ``function``
        the method that was called.
        """
        if seconds > SLOW_S:
            self.budget.on_slow(self._faults.cause(what, vhost, part), seconds)
        if seconds > CALL_LIMIT_S:
            self._faults.contain_in_part(kind, Overrun(seconds), vhost, part, function=function)
