"""The schedule that ends turns on a reactor, and the watch that measures them."""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from gateway.kernel.journal.journal import Journal
from gateway.logs import StructuredLog
from gateway.net.clock import ReactorClock
from gateway.net.loop import Loop
from gateway.net.reactor import TurnReactor
from gateway.net.turn import Schedule, Turn
from gateway.net.turn_watch import TurnWatch

_log: Final = StructuredLog("node")


def schedule_of(reactor: Any) -> Schedule:  # Any: Twisted's interfaces are not types
    """Return what ends the turns of a reactor."""
    return reactor.loop if isinstance(reactor, TurnReactor) else _DelayedCalls(reactor)


def watch_turns(
    schedule: Schedule, clock: ReactorClock, journal: Journal, processor_wait_s: Callable[[], float]
) -> TurnWatch:
    """Measure the turns of a loop and log long ones with their causes.

    ``processor_wait_s`` returns how long the loop's thread lacked a processor in the last one or two seconds.
    """
    watch = schedule.watch if isinstance(schedule, Loop) else TurnWatch()
    watch.on_slow = partial(_log_slow_turn, processor_wait_s)
    clock.on_slow = journal.budget.on_slow = watch.part
    clock.background.on_slice = lambda job, seconds: watch.part(f"background work {job}", seconds)
    return watch


def _log_slow_turn(processor_wait_s: Callable[[], float], seconds: float, cause: str) -> None:
    waited_s = min(processor_wait_s(), seconds)
    _log.warning(
        "a turn of the event loop took long",
        ms=round(seconds * 1e3),
        processor_wait_ms=round(waited_s * 1e3),
        cause=cause or "not known",
    )


class _DelayedCalls(Schedule):
    """Ends turns with delayed calls, on a reactor without turns of its own."""

    def __init__(self, reactor: Any) -> None:
        self._reactor = reactor

    def end_soon(self, turn: Turn) -> None:
        """End the turn in a delayed call."""
        self._reactor.callLater(0, turn.end)

    def go_on_soon(self, turn: Turn) -> None:
        """Continue the remaining work of a turn in a delayed call."""
        self._reactor.callLater(0, turn.go_on)
