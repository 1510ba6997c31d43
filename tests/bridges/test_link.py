"""A link: attempts, failures, the delay between them, and its end."""

from twisted.internet.defer import Deferred

from gateway.bridges.link import Link, LinkState, Lost, reason_of
from gateway.bridges.transfer import ShovelAckMode, Transfer
from gateway.logs import StructuredLog
from gateway.testing import FakeClock
from tests.bridges.ends import FakeDestination, FakeSource

DELAY_S = 5.0


class Attempts:
    """The opener of a link: a test completes each attempt."""

    def __init__(self, delay_s: float = DELAY_S) -> None:
        self.clock = FakeClock()
        self.waiting: list[Deferred[None]] = []
        self.lost: list[Lost] = []
        self.transfers: list[Transfer] = []
        self.sources: list[FakeSource] = []
        self.link = Link("s", self.open, delay_s, self.clock, StructuredLog("test"))

    async def open(self, lost: Lost) -> Transfer:
        self.lost.append(lost)
        self.waiting.append(Deferred())
        await self.waiting[-1]
        self.sources.append(FakeSource())
        ends = self.sources[-1], FakeDestination()
        self.transfers.append(Transfer(*ends, ShovelAckMode.ON_CONFIRM, lambda parcel: True, self.clock.call_later))
        return self.transfers[-1]


def test_a_link_runs_when_both_ends_are_open() -> None:
    attempts = Attempts()
    attempts.link.start()
    assert attempts.link.state is LinkState.STARTING
    attempts.waiting[0].callback(None)
    assert attempts.link.state is LinkState.RUNNING
    assert attempts.sources[0].is_started


def test_a_failure_is_reported_and_followed_by_another_attempt() -> None:
    attempts = Attempts()
    attempts.link.start()
    attempts.waiting[0].errback(OSError("no route"))
    assert (attempts.link.state, attempts.link.reason) == (LinkState.TERMINATED, "no route")
    attempts.clock.advance(DELAY_S)
    attempts.waiting[1].callback(None)
    assert attempts.link.state is LinkState.RUNNING


def test_a_lost_end_closes_the_other_one_and_the_link_starts_again() -> None:
    attempts = Attempts()
    attempts.link.start()
    attempts.waiting[0].callback(None)
    attempts.lost[0]("gone")
    attempts.lost[0]("gone as well")
    assert attempts.sources[0].is_closed
    assert attempts.link.reason == "gone"
    attempts.clock.advance(DELAY_S)
    assert len(attempts.waiting) == 2


def test_an_end_that_is_lost_while_the_other_opens_ends_the_attempt() -> None:
    attempts = Attempts()
    attempts.link.start()
    attempts.lost[0]("gone")
    assert attempts.link.state is LinkState.TERMINATED
    attempts.clock.advance(DELAY_S)
    assert attempts.link.state is LinkState.STARTING


def test_without_a_delay_there_is_one_attempt() -> None:
    attempts = Attempts(delay_s=0)
    attempts.link.start()
    attempts.waiting[0].errback(OSError("no route"))
    attempts.clock.advance(3600)
    assert len(attempts.waiting) == 1


def test_a_stopped_link_closes_its_ends_and_stays_stopped() -> None:
    attempts = Attempts()
    attempts.link.start()
    attempts.waiting[0].callback(None)
    attempts.link.stop()
    attempts.lost[0]("gone")
    attempts.clock.advance(3600)
    assert attempts.sources[0].is_closed
    assert len(attempts.waiting) == 1


def test_stopping_while_the_ends_open_cancels_the_attempt() -> None:
    attempts = Attempts()
    attempts.link.start()
    attempts.link.stop()
    attempts.clock.advance(3600)
    assert len(attempts.waiting) == 1
    assert not attempts.transfers


def test_stopping_while_waiting_cancels_the_next_attempt() -> None:
    attempts = Attempts()
    attempts.link.start()
    attempts.waiting[0].errback(OSError("no route"))
    attempts.link.stop()
    attempts.clock.advance(3600)
    assert len(attempts.waiting) == 1


def test_an_error_without_text_is_named() -> None:
    assert reason_of(ValueError()) == "ValueError"
