"""The end of a turn: the journal is flushed first, which sends confirms, then each peer is written to once."""

import pytest

from gateway.kernel.budget import TURN_S, TurnBudget
from gateway.net import turn as turns
from gateway.net.turn import Schedule, Turn

#: Its doubles derive from compiled classes.
pytestmark = pytest.mark.source


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
        self.awake: set[str] = set()  # names of the participants whose output is not yet written
        self.confirmed: list[TurnParticipant] = []
        self.budget = TurnBudget(lambda: self.now_s)
        self.schedule = Scheduled()
        self.turn = Turn(self, self.schedule)

    def flush(self) -> None:
        self.append("journal")
        for participant in self.confirmed:
            self.turn.schedule_flush(participant)
        self.confirmed.clear()


class TurnParticipant(turns.TurnParticipant):
    def __init__(self, name: str, events: Events, flushes_again_in: str = "") -> None:
        self.name = name
        self.events = events
        self.flushes_again_in = flushes_again_in

    def flush(self) -> None:
        self._say("flush")

    def fail(self) -> None:
        self._say("fail")

    def _say(self, what: str) -> None:
        self.events.append(f"{self.name}.{what}")
        if what == self.flushes_again_in:
            self.flushes_again_in = ""
            speak(self.events, self)


def speak(events: Events, participant: TurnParticipant) -> None:
    """Let a participant have output at the end of the turn."""
    events.turn.schedule_flush(participant)


def test_the_journal_is_flushed_before_any_output() -> None:
    events = Events()
    for name in "ab":
        speak(events, TurnParticipant(name, events))
    assert events == []
    events.turn.end()
    assert events == ["journal", "a.flush", "b.flush"]


def test_confirms_that_the_journal_sends_are_output_of_the_same_turn() -> None:
    events = Events()
    speak(events, TurnParticipant("a", events))
    events.confirmed.append(TurnParticipant("b", events))
    events.turn.end()
    assert events == ["journal", "a.flush", "b.flush"]
    assert len(events.schedule.turns) == 1


def test_changes_recorded_while_confirms_are_sent_belong_to_the_next_turn() -> None:
    events = Events()
    speak(events, TurnParticipant("a", events))
    events.has_begun = True
    events.turn.end()
    assert len(events.schedule.turns) == 2


def test_a_turn_is_scheduled_once() -> None:
    events = Events()
    events.turn.schedule_flush(TurnParticipant("a", events))
    events.turn.touch()
    events.turn.schedule_flush(TurnParticipant("b", events))
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


def test_a_participant_scheduled_while_outputs_are_flushed_belongs_to_the_next_turn() -> None:
    events = Events()
    speak(events, TurnParticipant("a", events, flushes_again_in="flush"))
    events.turn.end()
    assert events == ["journal", "a.flush"]
    assert len(events.schedule.turns) == 2
    events.turn.end()
    assert events[2:] == ["journal", "a.flush"]


class Broken(TurnParticipant):
    """Raises when it is flushed."""

    def _say(self, what: str) -> None:
        super()._say(what)
        if what == "flush":
            raise RuntimeError("a fault")


def test_a_participant_that_raises_is_failed_and_the_others_are_served() -> None:
    events = Events()
    speak(events, Broken("a", events))
    speak(events, TurnParticipant("b", events))
    events.turn.end()
    assert events == ["journal", "a.flush", "a.fail", "b.flush"]


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


class Subscriber(TurnParticipant):
    """Has output, little or much of it."""

    def __init__(self, name: str, events: Events, is_little: bool = True) -> None:
        super().__init__(name, events)
        self.is_little = is_little

    def can_gather(self) -> bool:
        return self.is_little


class Publisher(Worker):
    """Causes output of others in each share."""

    def __init__(self, events: Events, shares: int, *subscribers: Subscriber) -> None:
        super().__init__("publisher", events, shares)
        self.subscribers = subscribers

    def go_on(self) -> bool:
        is_held = super().go_on()
        for subscriber in self.subscribers:
            if subscriber.name not in self.events.awake:
                self.events.awake.add(subscriber.name)
                self.events.turn.schedule_flush(subscriber)
        return is_held

    def flush(self) -> None:
        self.events.append("publisher.flush")


def written_in_each_turn(events: Events) -> list[list[str]]:
    """Run turns until nothing is held; return the flushes of each."""
    turns_seen = []
    while events.schedule.busy:
        events.schedule.busy.clear()
        del events[:]
        events.turn.go_on()
        events.turn.end()
        turns_seen.append([event.removesuffix(".flush") for event in events if event.endswith(".flush")])
        events.awake.difference_update(turns_seen[-1])
    return turns_seen


def test_little_output_of_leftover_input_is_gathered_for_a_few_turns() -> None:
    events = Events()
    events.turn.hold(Publisher(events, 7, Subscriber("a", events)))
    assert written_in_each_turn(events) == [[], [], [], [], ["a"], [], ["publisher", "a"]]


def test_little_output_of_the_first_share_of_leftover_input_is_gathered_with_that_of_the_next() -> None:
    events = Events()
    speak(events, Subscriber("innocent", events))
    publisher = Publisher(events, 2, Subscriber("a", events))
    before = events.turn.output_count
    speak(events, publisher.subscribers[0])
    events.awake.add("a")
    events.turn.hold(publisher)
    events.turn.gather_since(before)
    del events[:]
    events.turn.end()
    assert events == ["journal", "innocent.flush"]
    assert written_in_each_turn(events) == [[], ["publisher", "a"]]


def test_much_output_of_leftover_input_is_written_at_once() -> None:
    events = Events()
    events.turn.hold(Publisher(events, 3, Subscriber("a", events, is_little=False), Subscriber("b", events)))
    assert written_in_each_turn(events) == [["a"], ["a"], ["publisher", "b", "a"]]


def test_output_that_grows_meanwhile_is_written_at_once() -> None:
    events = Events()
    subscriber = Subscriber("a", events)
    events.turn.hold(Publisher(events, 4, subscriber))
    events.turn.go_on()
    subscriber.is_little = False
    events.turn.go_on()
    del events[:]
    events.turn.end()
    assert events == ["journal", "a.flush"]


def test_output_of_other_input_is_not_gathered() -> None:
    events = Events()
    events.turn.hold(Publisher(events, 4, Subscriber("a", events)))
    speak(events, Subscriber("innocent", events))
    events.turn.go_on()
    del events[:]
    events.turn.end()
    assert events == ["journal", "innocent.flush"]


class Releasing(turns.TurnParticipant):
    """A participant whose share lets another one go on."""

    def __init__(self, turn: Turn, other: turns.TurnParticipant) -> None:
        self._turn = turn
        self._other = other

    def go_on(self) -> bool:
        self._turn.hold(self._other)
        return False

    def flush(self) -> None:
        pass


class Working(turns.TurnParticipant):
    """A participant that always needs another share."""

    def __init__(self) -> None:
        self.shares = 0

    def go_on(self) -> bool:
        self.shares += 1
        return True

    def flush(self) -> None:
        pass


def test_a_participant_that_is_held_in_the_share_of_another_one_gets_one_share_of_each_turn() -> None:
    events = Events()
    working = Working()
    events.turn.hold(Releasing(events.turn, working))
    for turn in range(5):
        busy, events.schedule.busy = events.schedule.busy, []
        assert busy == [events.turn]
        events.turn.go_on()
        assert working.shares == turn
