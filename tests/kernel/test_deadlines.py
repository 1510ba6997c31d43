"""Many deadlines on one timer: each is told once, when it has passed, and those of one moment in slices."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.kernel.deadlines import Deadlines
from gateway.testing import FakeClock, MemoryBroker
from gateway.testing.clock import FakeTimer
from tests.kernel.session_clients import Client
from tests.kernel.test_retained import message

KEYS = st.sampled_from("abcdef")


class Told:
    """Deadlines, and which keys were told they are due."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.keys: list[str] = []
        self.deadlines = Deadlines(clock, self.keys.append)


@pytest.fixture
def told() -> Told:
    return Told(FakeClock())


def test_a_key_is_told_at_its_deadline_and_not_before(told: Told) -> None:
    told.deadlines.set("b", 2)
    told.deadlines.set("a", 1)
    told.clock.advance(0.999)
    assert told.keys == []
    told.clock.advance(0.001)
    assert told.keys == ["a"]
    told.clock.advance(1)
    assert (told.keys, len(told.deadlines)) == (["a", "b"], 0)


def test_what_is_due_already_is_told_in_a_turn_to_come(told: Told) -> None:
    told.deadlines.set("a", -5)
    assert told.keys == []
    told.clock.advance(0)
    assert told.keys == ["a"]


def test_a_deadline_that_is_moved_or_dropped_is_not_told(told: Told) -> None:
    for key in "abc":
        told.deadlines.set(key, 1)
    told.deadlines.set("a", 3)
    told.deadlines.drop("b")
    told.deadlines.drop("never")
    told.clock.advance(2)
    assert told.keys == ["c"]
    told.clock.advance(1)
    assert told.keys == ["c", "a"]


def test_one_key_that_fails_keeps_no_other_waiting() -> None:
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


def test_deadlines_that_are_moved_again_and_again_take_no_memory(told: Told) -> None:
    for number in range(10_000):
        told.deadlines.set("a", number)
    assert len(told.deadlines._heap) < 100


@given(st.lists(st.tuples(KEYS, st.integers(0, 5)) | KEYS | st.integers(1, 3).map(float), max_size=40))
def test_it_tells_what_a_list_of_deadlines_would(steps: list[tuple[str, int] | str | float]) -> None:
    told = Told(FakeClock())
    model: dict[str, float] = {}
    now_s, expected = 0.0, []
    for step in steps:
        match step:
            case (key, delay_s):
                told.deadlines.set(key, delay_s)
                model[key] = now_s + delay_s
            case str(key):
                told.deadlines.drop(key)
                model.pop(key, None)
            case float(seconds):
                told.clock.advance(seconds)
                now_s += seconds
                due = [key for key, at_s in model.items() if at_s <= now_s]
                expected += due
                model = {key: at_s for key, at_s in model.items() if key not in due}
                assert sorted(told.keys) == sorted(expected)
    assert len(told.deadlines) == len(model)


# ---- Those who have deadlines ----------------------------------------------------------------------------------------


class WorkingClock(FakeClock):
    """Time passes by being looked at once ``is_working``, as it does while work is done; counts the turns it takes."""

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
    """Let time pass; return how many turns it took to do what was due."""
    clock = broker.clock
    assert isinstance(clock, WorkingClock)
    clock.is_working, clock.turns = True, 0
    clock.advance(seconds)
    return clock.turns


def test_sessions_that_expire_at_one_moment_end_in_slices(broker: MemoryBroker) -> None:
    for number in range(200):
        client = Client(broker, f"c{number}")
        client.connect(expiry_s=10)
        client.subscribe(f"a/{number}")
        client.leave()
    assert turns_to(broker, 11) > 5
    assert len(broker.vhost.sessions) == 0
    assert broker.vhost.sessions.expired == 200


def test_wills_that_are_due_at_one_moment_are_published_in_slices(broker: MemoryBroker) -> None:
    wills = broker.vhost.wills
    for number in range(200):
        wills.leave(f"c{number}", message("gone", b"x"), False, 10)
    assert turns_to(broker, 11) > 5
    assert len(wills) == 0
    assert broker.vhost.traffic.published == 200


def test_retained_messages_that_expire_at_one_moment_are_cleared_in_slices(broker: MemoryBroker) -> None:
    for number in range(200):
        broker.vhost.retained.keep(message(f"a/{number}", expiry_s=10))
    assert turns_to(broker, 11) > 5
    assert len(broker.vhost.retained) == 0
