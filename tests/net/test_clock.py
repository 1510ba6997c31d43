"""The kernel's clock on a reactor: a delayed call that fails is repeated, and its turn ends."""

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
from twisted.internet.task import Clock

import gateway
from gateway.kernel.clock import SLICE_S
from gateway.net.clock import FIRST_RETRY_S, MOST_RETRIES, ReactorClock, TimeSlice, slices_on


class FailingCall:
    """Fails the given number of times, then succeeds."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.calls = 0

    def __call__(self) -> None:
        self.calls += 1
        if self.calls <= self.failures:
            raise RuntimeError("not yet")


@pytest.fixture
def reactor() -> Clock:
    return Clock()


def test_a_failed_call_is_repeated_until_it_succeeds(reactor: Clock) -> None:
    touched: list[int] = []
    faults: list[Exception] = []
    clock = ReactorClock(reactor, lambda: touched.append(1))
    clock.on_fault = faults.append
    call = FailingCall(2)
    clock.call_later(5, call)
    reactor.pump([5, FIRST_RETRY_S, 2 * FIRST_RETRY_S, 100, 100])
    assert call.calls == 3
    assert [str(fault) for fault in faults] == ["not yet", "not yet"]
    assert len(touched) == 3


def test_a_call_that_always_fails_is_repeated_a_limited_number_of_times(reactor: Clock) -> None:
    clock = ReactorClock(reactor, lambda: None)
    clock.on_fault = lambda error: None
    call = FailingCall(1000)
    clock.call_later(0, call)
    reactor.pump([1] * 1000)
    assert call.calls == 1 + MOST_RETRIES


def test_a_cancelled_call_is_not_made(reactor: Clock) -> None:
    clock = ReactorClock(reactor, lambda: None)
    call = FailingCall(0)
    clock.call_later(1, call).cancel()
    reactor.advance(2)
    assert call.calls == 0


def test_a_held_clock_makes_no_call_before_it_is_released(reactor: Clock) -> None:
    clock = ReactorClock(reactor, lambda: None)
    called: list[str] = []
    clock.hold()
    clock.call_later(1, lambda: called.append("due while held"))
    clock.call_later(10, lambda: called.append("due later"))
    clock.call_later(1, lambda: called.append("cancelled while held")).cancel()
    released = clock.call_later(10, lambda: called.append("cancelled after the release"))
    reactor.advance(5)
    assert called == []
    clock.release()
    reactor.advance(0)
    assert called == ["due while held"]
    released.cancel()
    reactor.advance(4.9)
    assert called == ["due while held"]
    reactor.advance(0.1)
    assert called == ["due while held", "due later"]


def test_a_slice_of_periodic_work_is_as_long_as_any_other() -> None:
    now_s = 7.0
    is_over = TimeSlice(lambda: now_s)
    assert not is_over()
    now_s += SLICE_S
    assert is_over()


class Turns:
    """A reactor whose calls without a delay are made in the next turn."""

    def __init__(self) -> None:
        self.calls: list[Callable[[], None]] = []

    def callLater(self, delay_s: float, call: Callable[[], None]) -> object:
        self.calls.append(call)
        return call  # what would cancel it

    def run_turn(self) -> None:
        calls, self.calls = self.calls, []
        for call in calls:
            call()


def test_all_long_work_of_a_node_shares_one_slice_of_a_turn() -> None:
    reactor, times_ms = Turns(), count(1)
    slices = slices_on(reactor, lambda: next(times_ms) / 1000)
    steps: list[int] = []

    def endless(number: int) -> Iterator[None]:
        while True:
            steps.append(number)
            yield

    for number in range(4):
        slices.cooperate(endless(number))
    reactor.run_turn()
    first = len(steps)
    reactor.run_turn()
    assert (first, len(steps)) == (5, 10)
    assert set(steps) == {0, 1, 2, 3}


def test_a_node_has_one_such_set_of_tasks() -> None:
    sources = (Path(gateway.__file__).parent).rglob("*.py")
    assert [file.name for file in sources if "Cooperator(" in file.read_text()] == ["clock.py"]
