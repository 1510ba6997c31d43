"""The end of a turn: the journal is flushed first, then confirms are collected, then each peer is written to once."""

from collections.abc import Callable

import pytest

from gateway.kernel.budget import TURN_S, TurnBudget
from gateway.net import turn as turns
from gateway.net.turn import Schedule, Turn


class Scheduled(Schedule):
    def __init__(self) -> None:
        self.turns: list[Turn] = []
        self.busy: list[Turn] = []

    def end_soon(self, turn: Turn) -> None:
        self.turns.append(turn)

    def go_on_soon(self, turn: Turn) -> None:
        self.busy.append(turn)


class Events(list[str]):
    """The recorded events, the schedule, and the journal of the turn."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0
        self.has_begun = False
        self.budget = TurnBudget(lambda: self.now_s)
        self.schedule = Scheduled()
        self.turn = Turn(self, self.schedule)

    def flush(self) -> None:
        self.append("journal")


class TurnParticipant(turns.TurnParticipant):
    def __init__(self, name: str, events: Events, awaken_in: str = "") -> None:
        self.name = name
        self.events = events
        self.awaken_in = awaken_in

    def end_turn(self) -> None:
        self._say("end_turn")

    def flush(self) -> None:
        self._say("flush")

    def fail(self) -> None:
        self._say("fail")

    def _say(self, what: str) -> None:
        self.events.append(f"{self.name}.{what}")
        if what == self.awaken_in:
            self.awaken_in = ""
            speak(self.events, self)


def speak(events: Events, participant: TurnParticipant) -> None:
    """Let a participant have output at the end of the turn, confirms included."""
    events.turn.schedule_flush(participant)
    events.turn.defer_confirms(participant)


def test_the_journal_is_flushed_first_and_confirms_are_collected_before_any_output() -> None:
    events = Events()
    for name in "ab":
        speak(events, TurnParticipant(name, events))
    assert events == []
    events.turn.end()
    assert events == ["journal", "a.end_turn", "b.end_turn", "a.flush", "b.flush"]


def test_confirms_are_collected_only_from_participants_that_deferred_some() -> None:
    events = Events()
    events.turn.schedule_flush(TurnParticipant("a", events))
    speak(events, TurnParticipant("b", events))
    events.turn.end()
    assert events == ["journal", "b.end_turn", "a.flush", "b.flush"]


@pytest.mark.parametrize("act", [Turn.schedule_flush, Turn.defer_confirms])
def test_a_turn_is_scheduled_once(act: Callable[[Turn, TurnParticipant], None]) -> None:
    events = Events()
    act(events.turn, TurnParticipant("a", events))
    events.turn.touch()
    act(events.turn, TurnParticipant("b", events))
    assert len(events.schedule.turns) == 1


def test_a_turn_without_touch_is_not_scheduled() -> None:
    assert Events().schedule.turns == []


def test_an_ended_turn_calls_no_participant_twice() -> None:
    events = Events()
    speak(events, TurnParticipant("a", events))
    events.turn.end()
    events.clear()
    events.turn.end()
    assert events == ["journal"]


def test_a_participant_scheduled_while_a_turn_ends_belongs_to_the_next_turn() -> None:
    for moment in ("end_turn", "flush"):
        events = Events()
        speak(events, TurnParticipant("a", events, awaken_in=moment))
        events.turn.end()
        assert events == ["journal", "a.end_turn", "a.flush"]
        assert len(events.schedule.turns) == 2
        events.turn.end()
        assert events[3:] == ["journal", "a.end_turn", "a.flush"]


class Broken(TurnParticipant):
    """Raises in one of the two steps."""

    def _say(self, what: str) -> None:
        super()._say(what)
        if what == self.name:
            raise RuntimeError("a fault")


@pytest.mark.parametrize("step", ["end_turn", "flush"])
def test_a_participant_that_raises_is_failed_and_the_others_are_served(step: str) -> None:
    events = Events()
    speak(events, Broken(step, events))
    speak(events, TurnParticipant("b", events))
    events.turn.end()
    assert f"{step}.fail" in events
    assert events[-1] == "b.flush"
    assert "b.end_turn" in events


class Worker(turns.TurnParticipant):
    """Needs so many shares; each takes ``seconds`` and counts ``work`` units."""

    def __init__(self, name: str, events: Events, shares: int, seconds: float = TURN_S, work: int = 1000) -> None:
        self.name = name
        self.events = events
        self.shares = shares
        self.seconds = seconds
        self.work = work

    def go_on(self) -> bool:
        self.events.append(self.name)
        budget = self.events.budget
        budget.is_spent()
        self.events.now_s += self.seconds
        budget.work += self.work
        self.shares -= 1
        if self.shares < 0:
            raise RuntimeError("no work left")
        return self.shares > 0

    def fail(self) -> None:
        self.events.append(f"{self.name}.fail")


def test_participants_with_leftover_input_are_served_in_rotation_one_budget_at_a_time() -> None:
    events = Events()
    for name in ("a", "b"):
        events.turn.hold(Worker(name, events, 2))
    assert events.schedule.busy == [events.turn]
    for expected in ("a", "b", "a", "b"):
        del events[:]
        events.schedule.busy.clear()
        events.turn.go_on()
        assert events == [expected]
    assert not events.schedule.busy


def test_one_budget_serves_as_many_participants_as_it_allows() -> None:
    events = Events()
    for name in ("a", "b", "c"):
        events.turn.hold(Worker(name, events, 1, seconds=0.0))
    events.turn.go_on()
    assert events == ["a", "b", "c"]


def test_a_participant_that_raises_in_go_on_is_failed_and_leaves_the_rotation() -> None:
    events = Events()
    events.turn.hold(Worker("broken", events, 0, seconds=0.0))
    events.turn.hold(Worker("sound", events, 1, seconds=0.0))
    events.turn.go_on()
    assert events == ["broken", "broken.fail", "sound"]
    assert len(events.schedule.busy) == 1  # scheduled once, when the first was held


def test_changes_recorded_in_go_on_schedule_the_end_of_a_turn() -> None:
    events = Events()
    events.has_begun = True
    events.turn.hold(Worker("a", events, 1))
    events.turn.go_on()
    assert events.schedule.turns == [events.turn]
