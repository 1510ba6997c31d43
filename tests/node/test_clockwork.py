"""The periodic jobs of a node."""

from collections.abc import Callable
from typing import cast

from twisted.internet.task import Clock, Cooperator

from gateway.kernel.events import Events
from gateway.kernel.faults import Faults
from gateway.net.turn import Turn
from gateway.node.clockwork import Clockwork


def clockwork(reactor: Clock, faults: Faults | None = None) -> Clockwork:
    """Return jobs of which none is sliced, so that no turn is needed."""
    return Clockwork(reactor, faults or Faults(Events()), cast(Turn, None), Cooperator(started=False))


class Paced:
    """A job that asks for another call soon as often as it is told; ``times`` are those of its calls."""

    def __init__(self, reactor: Clock, soon: Callable[[int], bool]) -> None:
        self.times: list[float] = []
        self._reactor = reactor
        self._soon = soon

    def __call__(self) -> bool:
        self.times.append(round(self._reactor.seconds(), 3))
        return self._soon(len(self.times))


def advance(reactor: Clock, seconds: float) -> None:
    for _ in range(round(seconds * 100)):
        reactor.advance(0.01)


def test_a_paced_job_is_called_at_its_interval_and_soon_again_while_it_asks_for_that() -> None:
    reactor = Clock()
    job = Paced(reactor, lambda calls: calls in (2, 3))
    jobs = clockwork(reactor)
    jobs.add_paced(0.5, 0.1, job)
    jobs.start()
    advance(reactor, 1.6)
    assert job.times == [0.0, 0.5, 0.6, 0.7, 1.0, 1.5]


def test_a_paced_job_that_always_asks_is_called_once_for_each_short_interval() -> None:
    reactor = Clock()
    job = Paced(reactor, lambda calls: True)
    jobs = clockwork(reactor)
    jobs.add_paced(0.5, 0.1, job)
    jobs.start()
    advance(reactor, 1.05)
    assert len(job.times) == 11


def test_a_stopped_paced_job_is_called_no_more() -> None:
    reactor = Clock()
    job = Paced(reactor, lambda calls: True)
    jobs = clockwork(reactor)
    jobs.add_paced(0.5, 0.1, job)
    jobs.start()
    jobs.stop()
    advance(reactor, 2.0)
    assert job.times == [0.0]
    assert not reactor.getDelayedCalls()


def test_a_paced_job_that_stops_the_jobs_is_called_no_more() -> None:
    reactor = Clock()
    jobs = clockwork(reactor)

    def stop(calls: int) -> bool:
        if calls == 2:
            jobs.stop()
        return True

    job = Paced(reactor, stop)
    jobs.add_paced(0.5, 0.1, job)
    jobs.start()
    advance(reactor, 2.0)
    assert len(job.times) == 2
    assert not reactor.getDelayedCalls()


def test_a_fault_of_a_paced_job_is_counted_and_the_job_goes_on() -> None:
    reactor, faults = Clock(), Faults(Events())

    def fail(calls: int) -> bool:
        raise RuntimeError("a fault")

    job = Paced(reactor, fail)
    jobs = clockwork(reactor, faults)
    jobs.add_paced(0.5, 0.1, job)
    jobs.start()
    advance(reactor, 1.1)
    assert job.times == [0.0, 0.5, 1.0]
    assert faults.total == 3
