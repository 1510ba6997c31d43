"""Periodic jobs of a node; an exception in one run affects neither later runs nor other jobs."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

from twisted.internet.task import Cooperator, LoopingCall

from gateway.kernel.faults import Faults
from gateway.logs import StructuredLog
from gateway.net.turn import Turn

_log: Final = StructuredLog("node")

#: The origin of the exceptions of jobs.
_ORIGIN: Final = "clockwork"


class Clockwork:
    """Periodic jobs on one reactor. ``faults`` counts and logs their exceptions, long ones run in ``slices``."""

    def __init__(
        self,
        reactor: Any,  # Any: Twisted's interfaces are not types
        faults: Faults,
        turn: Turn,
        slices: Cooperator,
    ) -> None:
        self._reactor = reactor
        self._faults = faults
        self._turn = turn
        self._slices = slices
        self._jobs: list[tuple[LoopingCall, float]] = []
        self._paced: list[_PacedJob] = []

    def add(self, interval_s: float, job: Callable[[], None]) -> None:
        """Call a job at each interval, from ``start`` on."""
        self._add(interval_s, LoopingCall(partial(self._contained, job)))

    def add_paced(self, interval_s: float, short_s: float, job: Callable[[], bool]) -> None:
        """Call a job at each interval, and again after ``short_s`` while it returns true."""
        paced = _PacedJob(self._reactor, short_s, job, self._faults)
        self._paced.append(paced)
        self._add(interval_s, LoopingCall(paced.begin))

    def add_sliced(self, interval_s: float, job: Callable[[], Iterator[None]], *, in_turns: bool = False) -> None:
        """Run long work at each interval, with iterations of the reactor between its steps.

        ``in_turns`` is for work that sends to clients: each step ends in a turn.
        """
        self._add(interval_s, LoopingCall(lambda: self._slices.coiterate(self._steps(job, in_turns))))

    def start_sliced(self, interval_s: float, job: Callable[[], Iterator[None]]) -> None:
        """Start long work at each interval, after ``start``."""
        self.add_sliced(interval_s, job)
        self._start(*self._jobs[-1])

    def start(self) -> None:
        """Start all jobs; each is run at once."""
        for loop, interval_s in self._jobs:
            self._start(loop, interval_s)

    def stop(self) -> None:
        """Stop all jobs."""
        for loop, _ in self._jobs:
            if loop.running:
                loop.stop()
        for paced in self._paced:
            paced.stop()

    def _start(self, loop: LoopingCall, interval_s: float) -> None:
        loop.start(interval_s).addErrback(lambda failure: _log.error("clockwork stopped", error=failure.value))

    def _add(self, interval_s: float, loop: LoopingCall) -> None:
        loop.clock = self._reactor
        self._jobs.append((loop, interval_s))

    def _contained(self, job: Callable[[], None]) -> None:
        try:
            job()
        except Exception as error:  # a stopped job would freeze alarms, timeouts and statistics
            self._faults.contain(_ORIGIN, error)

    def _steps(self, job: Callable[[], Iterator[None]], in_turns: bool) -> Iterator[None]:
        try:
            for step in job():
                if in_turns:
                    self._turn.touch()
                yield step
        except Exception as error:  # as above
            self._faults.contain(_ORIGIN, error)


class _PacedJob:
    """A job that is called again soon while it returns true."""

    def __init__(self, reactor: Any, short_s: float, job: Callable[[], bool], faults: Faults) -> None:
        self._reactor = reactor
        self._short_s = short_s
        self._job = job
        self._faults = faults
        self._next: Any = None
        self._is_stopped = False

    def begin(self) -> None:
        """Call it, unless it is called soon anyway."""
        self._is_stopped = False
        if self._next is None:
            self._call()

    def stop(self) -> None:
        """Call it no more; the job itself may stop it."""
        self._is_stopped = True
        if self._next is not None:
            self._next.cancel()
            self._next = None

    def _call(self) -> None:
        self._next = None
        try:
            if self._job() and not self._is_stopped:
                self._next = self._reactor.callLater(self._short_s, self._call)
        except Exception as error:  # as above
            self._faults.contain(_ORIGIN, error)
