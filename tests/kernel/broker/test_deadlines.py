"""Many deadlines on one timer: each fires once, on time, and those of the same time in slices."""

from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.kernel.deadlines import Deadlines
from gateway.testing import FakeClock, MemoryBroker
from gateway.testing.clock import FakeTimer
from tests.kernel.session_clients import Client
from tests.kernel.sessions.test_retained import message

KEYS = st.sampled_from("abcdef")


class DeadlineRecorder:
    """Deadlines, and the keys that fired."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.keys: list[str] = []
        self.deadlines = Deadlines(clock, self.keys.append)


@pytest.fixture
def recorder() -> DeadlineRecorder:
    return DeadlineRecorder(FakeClock())


def test_a_deadline_fires_on_time_and_not_before(recorder: DeadlineRecorder) -> None:
    recorder.deadlines.set("b", 2)
    recorder.deadlines.set("a", 1)
    recorder.clock.advance(0.999)
    assert recorder.keys == []
    recorder.clock.advance(0.001)
    assert recorder.keys == ["a"]
    recorder.clock.advance(1)
    assert (recorder.keys, len(recorder.deadlines)) == (["a", "b"], 0)


def test_a_deadline_in_the_past_fires_in_a_later_turn(recorder: DeadlineRecorder) -> None:
    recorder.deadlines.set("a", -5)
    assert recorder.keys == []
    recorder.clock.advance(0)
    assert recorder.keys == ["a"]


def test_a_moved_or_dropped_deadline_does_not_fire_at_its_old_time(recorder: DeadlineRecorder) -> None:
    for key in "abc":
        recorder.deadlines.set(key, 1)
    recorder.deadlines.set("a", 3)
    recorder.deadlines.drop("b")
    recorder.deadlines.drop("never")
    recorder.clock.advance(2)
    assert recorder.keys == ["c"]
    recorder.clock.advance(1)
    assert recorder.keys == ["c", "a"]


def test_an_exception_for_one_key_does_not_delay_the_others() -> None:
    clock = FakeClock()
    keys: list[str] = []

    def due(key: str) -> None:
        keys.append(key)
        if key == "a":
            raise ZeroDivisionError

    deadlines = Deadlines(clock, due)
    deadlines.set("a", 1)
    deadlines.set("b", 1)
    with pytest.raises(ZeroDivisionError):
        clock.advance(1)
    clock.advance(0)
    assert keys == ["a", "b"]


def test_moving_a_deadline_repeatedly_uses_no_memory(recorder: DeadlineRecorder) -> None:
    for number in range(10_000):
        recorder.deadlines.set("a", number)
    assert len(recorder.deadlines._heap) < 100


def test_stale_deadlines_are_removed_a_few_at_a_time(recorder: DeadlineRecorder) -> None:
    deadlines = recorder.deadlines
    sizes = []
    for number in range(5000):
        deadlines.set(f"{number % 500}", 1 + number / 1000)
        sizes.append(len(deadlines._heap) + len(deadlines._older))
    assert max(sizes) < 2000
    assert max(before - after for before, after in pairwise(sizes)) <= 4
    recorder.clock.advance(5.4)
    assert recorder.keys == []
    recorder.clock.advance(0.35)
    assert recorder.keys == [f"{number}" for number in range(251)]
    recorder.clock.advance(1)
    assert recorder.keys == [f"{number}" for number in range(500)]


def test_the_first_deadline_is_found_while_stale_ones_are_removed(recorder: DeadlineRecorder) -> None:
    for number in range(200):
        recorder.deadlines.set("first", 9 if number < 199 else 5)
        recorder.deadlines.set(f"{number}", 7)
    recorder.deadlines.set("0", 8)
    for key in range(1, 199):
        recorder.deadlines.drop(f"{key}")
    while not recorder.deadlines._older:
        recorder.deadlines.set("last", 6)
    recorder.clock.advance(5)
    assert recorder.keys == ["first"]
    recorder.clock.advance(3)
    assert recorder.keys == ["first", "last", "199", "0"]


def test_dropping_the_last_of_many_frees_the_others_in_slices(broker: MemoryBroker) -> None:
    deadlines = Deadlines(broker.clock, lambda key: None)
    for number in range(20_000):
        deadlines.set(f"{number}", 1)
    for number in range(19_999):
        deadlines.drop(f"{number}")
    clock = broker.clock
    assert isinstance(clock, WorkingClock)
    clock.is_working, clock.turns = True, 0
    deadlines.drop("19999")
    clock.advance(0)
    assert clock.turns > 5
    clock.is_working = False
    clock.advance(2)


@given(st.lists(st.tuples(KEYS, st.integers(0, 5)) | KEYS | st.integers(1, 3).map(float), max_size=40))
def test_deadlines_match_a_model(steps: list[tuple[str, int] | str | float]) -> None:
    recorder = DeadlineRecorder(FakeClock())
    model: dict[str, float] = {}
    now_s, expected = 0.0, []
    for step in steps:
        match step:
            case (key, delay_s):
                recorder.deadlines.set(key, delay_s)
                model[key] = now_s + delay_s
            case str(key):
                recorder.deadlines.drop(key)
                model.pop(key, None)
            case float(seconds):
                recorder.clock.advance(seconds)
                now_s += seconds
                due = [key for key, at_s in model.items() if at_s <= now_s]
                expected += due
                model = {key: at_s for key, at_s in model.items() if key not in due}
                assert sorted(recorder.keys) == sorted(expected)
    assert len(recorder.deadlines) == len(model)


# ---- Users of deadlines ----------------------------------------------------------------------------------------------


class WorkingClock(FakeClock):
    """A clock that advances with each reading while ``is_working``, like real work; counts the turns."""

    def __init__(self) -> None:
        super().__init__()
        self.is_working = False
        self.turns = 0
        self._worked_s = 0.0

    def monotonic_s(self) -> float:
        self._worked_s += 0.001 if self.is_working else 0
        return super().monotonic_s() + self._worked_s

    def call_later(self, delay_s: float, call: Callable[[], None]) -> FakeTimer:
        self.turns += delay_s == 0
        return super().call_later(delay_s, call)


@pytest.fixture
def broker() -> MemoryBroker:
    return MemoryBroker(clock=WorkingClock())


def turns_to(broker: MemoryBroker, seconds: float) -> int:
    """Advance the clock; return the number of turns for the work that was due."""
    clock = broker.clock
    assert isinstance(clock, WorkingClock)
    clock.is_working, clock.turns = True, 0
    clock.advance(seconds)
    return clock.turns


def test_sessions_that_expire_at_the_same_time_end_in_slices(broker: MemoryBroker) -> None:
    for number in range(200):
        client = Client(broker, f"c{number}")
        client.connect(expiry_s=10)
        client.subscribe(f"a/{number}")
        client.leave()
    assert turns_to(broker, 11) > 5
    assert len(broker.vhost.sessions) == 0
    assert broker.vhost.sessions.expired == 200


def test_wills_due_at_the_same_time_are_published_in_slices(broker: MemoryBroker) -> None:
    wills = broker.vhost.wills
    for number in range(200):
        wills.leave(f"c{number}", message("gone", b"x"), False, 10)
    assert turns_to(broker, 11) > 5
    assert len(wills) == 0
    assert broker.vhost.traffic.published == 200


def test_retained_messages_that_expire_at_the_same_time_are_cleared_in_slices(broker: MemoryBroker) -> None:
    for number in range(200):
        broker.vhost.retained.keep(message(f"a/{number}", expiry_s=10))
    assert turns_to(broker, 11) > 5
    assert len(broker.vhost.retained) == 0
