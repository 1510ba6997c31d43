"""Authentication methods are held to their promises, and those they let in to the rules for everybody."""

import logging
from collections.abc import Callable

import pytest

from gateway.access import Access, Answer, Challenge, Dialogue, Failure, Principal, Success, Visitor

GUEST = Principal("guest", frozenset({"administrator"}))
ANNA = Principal("anna")
HERE = Visitor("/", "sensor-1", "127.0.0.1")
AFAR = Visitor("/", "sensor-1", "192.0.2.7")


class Script:
    """A method whose dialogues give the same answers in order; an exception is raised, and ``None`` comes later."""

    def __init__(self, *answers: object) -> None:
        self.answers = list(answers)
        self.heard: list[object] = []
        self.later: Callable[[Answer], None] = lambda given: None

    def begin(self, visitor: Visitor) -> Dialogue:
        self.heard.append(visitor)
        return self

    def step(self, data: bytes, answer: Callable[[Answer], None]) -> None:
        self.heard.append(data)
        match self.answers.pop(0):
            case Exception() as error:
                raise error
            case None:
                self.later = answer
            case given:
                answer(given)  # type: ignore[arg-type]  # some tests give what is no answer


class Unwilling:
    """A method that does not even begin."""

    def begin(self, visitor: Visitor) -> Dialogue:
        raise RuntimeError("the plugin is broken")


def answers(access: Access, *said: bytes, visitor: Visitor = HERE) -> list[Answer]:
    """Return what a client hears that says this, turn by turn."""
    dialogue = access.converse("SCRIPT", visitor)
    assert dialogue is not None
    heard: list[Answer] = []
    for data in said:
        dialogue.step(data, heard.append)
    return heard


def access_with(method: Script | Unwilling) -> Access:
    return Access([], [], methods={"SCRIPT": method})


def test_a_dialogue_goes_back_and_forth() -> None:
    script = Script(Challenge(b"1"), Challenge(b"2"), Success(ANNA, b"3"))
    assert answers(access_with(script), b"a", b"b", b"c") == [Challenge(b"1"), Challenge(b"2"), Success(ANNA, b"3")]
    assert script.heard == [HERE, b"a", b"b", b"c"]


def test_a_method_that_nobody_offers() -> None:
    assert access_with(Script()).converse("ANOTHER", HERE) is None
    assert Access([], []).converse("SCRIPT", HERE) is None


def test_a_method_may_answer_later() -> None:
    script = Script(None, Success(ANNA))
    heard = answers(access_with(script), b"a")
    assert heard == []
    script.later(Challenge(b"1"))
    assert heard == [Challenge(b"1")]


def test_a_second_answer_is_dropped() -> None:
    script = Script(None)
    heard = answers(access_with(script), b"a")
    script.later(Failure("wrong"))
    script.later(Success(GUEST))
    assert heard == [Failure("wrong")]


BROKEN = [
    pytest.param(Unwilling(), "the plugin is broken", id="beginning raises"),
    pytest.param(Script(RuntimeError("a step is broken")), "a step is broken", id="a step raises"),
    pytest.param(Script("yes"), "the method answered 'yes'", id="an answer is none"),
    pytest.param(Script(ANNA), "the method answered Principal", id="an answer is a principal"),
]


@pytest.mark.parametrize(("method", "logged"), BROKEN)
def test_what_breaks_lets_nobody_in(method: Script | Unwilling, logged: str, caplog: pytest.LogCaptureFixture) -> None:
    (answer,) = answers(access_with(method), b"a")
    assert isinstance(answer, Failure)
    assert logged in caplog.text + repr([record.__dict__ for record in caplog.records])


def test_a_failure_is_logged_without_what_was_said(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert answers(access_with(Script(Failure("wrong", b"e=1"))), b"hush") == [Failure("wrong", b"e=1")]
    assert caplog.records[-1].__dict__["gateway_fields"] == {
        "user": "", "mechanism": "SCRIPT", "peer": "127.0.0.1", "reason": "wrong",
    }  # fmt: skip
    assert "hush" not in repr([record.__dict__ for record in caplog.records])


def test_a_loopback_user_comes_from_this_machine_or_not_at_all(caplog: pytest.LogCaptureFixture) -> None:
    assert answers(access_with(Script(Success(GUEST))), b"") == [Success(GUEST)]
    assert answers(access_with(Script(Success(ANNA))), b"", visitor=AFAR) == [Success(ANNA)]
    with caplog.at_level(logging.WARNING):
        refused = answers(access_with(Script(Success(GUEST, b"v=1"))), b"", visitor=AFAR)
    assert refused == [Failure("user can only log in via localhost")]
    assert caplog.records[-1].__dict__["gateway_fields"]["user"] == "guest"


def test_whoever_says_nothing_is_the_user_the_operator_chose() -> None:
    access = Access([], [])
    assert access.anonymous("guest", "127.0.0.1") == Principal("guest", frozenset())
    assert access.anonymous("sensors", "192.0.2.7") == Principal("sensors")


def test_whoever_says_nothing_is_held_to_where_that_user_may_come_from(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert Access([], []).anonymous("guest", "192.0.2.7") is None
    assert caplog.records[-1].__dict__["gateway_fields"]["mechanism"] == "ANONYMOUS"
