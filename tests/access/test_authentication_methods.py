"""Authentication methods must fulfil their contract; their users follow the common rules."""

import logging
from collections.abc import Callable

import pytest

from gateway.access import (
    Access,
    Answer,
    Challenge,
    Credentials,
    Dialogue,
    Failure,
    LoginThrottle,
    Principal,
    Success,
    ThrottleRules,
    Visitor,
)
from gateway.testing import FakeClock

GUEST = Principal("guest", frozenset({"administrator"}))
ANNA = Principal("anna")
LOCAL = Visitor("/", "sensor-1", "127.0.0.1")
REMOTE = Visitor("/", "sensor-1", "192.0.2.7")


class ScriptedMethod:
    """A method with scripted answers in order; an exception is raised, and ``None`` delays the answer."""

    def __init__(self, *answers: object) -> None:
        self.answers = list(answers)
        self.results: list[object] = []
        self.later: Callable[[Answer], None] = lambda given: None

    def begin(self, visitor: Visitor) -> Dialogue:
        self.results.append(visitor)
        return self

    def step(self, data: bytes, answer: Callable[[Answer], None]) -> None:
        self.results.append(data)
        match self.answers.pop(0):
            case Exception() as error:
                raise error
            case None:
                self.later = answer
            case given:
                answer(given)  # type: ignore[arg-type]  # some tests give what is no answer


class FailsToBegin:
    """A method whose ``begin`` raises."""

    def begin(self, visitor: Visitor) -> Dialogue:
        raise RuntimeError("the plugin is broken")


def answers(access: Access, *messages: bytes, visitor: Visitor = LOCAL) -> list[Answer]:
    """Return the answers to a client that sends these messages in order."""
    dialogue = access.start_dialogue("SCRIPT", visitor)
    assert dialogue is not None
    results: list[Answer] = []
    for data in messages:
        dialogue.step(data, results.append)
    return results


def access_with(method: ScriptedMethod | FailsToBegin) -> Access:
    return Access([], [], methods={"SCRIPT": method})


def test_an_exchange_of_several_steps() -> None:
    script = ScriptedMethod(Challenge(b"1"), Challenge(b"2"), Success(ANNA, b"3"))
    assert answers(access_with(script), b"a", b"b", b"c") == [Challenge(b"1"), Challenge(b"2"), Success(ANNA, b"3")]
    assert script.results == [LOCAL, b"a", b"b", b"c"]


def test_an_unknown_method_has_no_dialogue() -> None:
    assert access_with(ScriptedMethod()).start_dialogue("ANOTHER", LOCAL) is None
    assert Access([], []).start_dialogue("SCRIPT", LOCAL) is None


def test_a_method_may_answer_later() -> None:
    script = ScriptedMethod(None, Success(ANNA))
    results = answers(access_with(script), b"a")
    assert results == []
    script.later(Challenge(b"1"))
    assert results == [Challenge(b"1")]


def test_a_second_answer_is_ignored() -> None:
    script = ScriptedMethod(None)
    results = answers(access_with(script), b"a")
    script.later(Failure("wrong"))
    script.later(Success(GUEST))
    assert results == [Failure("wrong")]


BROKEN = [
    pytest.param(FailsToBegin(), "the plugin is broken", id="begin raises"),
    pytest.param(ScriptedMethod(RuntimeError("a step is broken")), "a step is broken", id="a step raises"),
    pytest.param(ScriptedMethod("yes"), "the method answered 'yes'", id="an invalid answer"),
    pytest.param(ScriptedMethod(ANNA), "the method answered Principal", id="an answer is a principal"),
]


@pytest.mark.parametrize(("method", "logged"), BROKEN)
def test_a_broken_method_refuses_the_login(
    method: ScriptedMethod | FailsToBegin, logged: str, caplog: pytest.LogCaptureFixture
) -> None:
    (answer,) = answers(access_with(method), b"a")
    assert isinstance(answer, Failure)
    assert logged in caplog.text + repr([record.__dict__ for record in caplog.records])


def test_a_failure_is_logged_without_the_client_s_data(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert answers(access_with(ScriptedMethod(Failure("wrong", b"e=1"))), b"hush") == [Failure("wrong", b"e=1")]
    assert caplog.records[-1].__dict__["gateway_fields"] == {
        "user": "", "mechanism": "SCRIPT", "peer": "127.0.0.1", "reason": "wrong",
    }  # fmt: skip
    assert "hush" not in repr([record.__dict__ for record in caplog.records])


def test_a_loopback_user_must_be_local(caplog: pytest.LogCaptureFixture) -> None:
    assert answers(access_with(ScriptedMethod(Success(GUEST))), b"") == [Success(GUEST)]
    assert answers(access_with(ScriptedMethod(Success(ANNA))), b"", visitor=REMOTE) == [Success(ANNA)]
    with caplog.at_level(logging.WARNING):
        refused = answers(access_with(ScriptedMethod(Success(GUEST, b"v=1"))), b"", visitor=REMOTE)
    assert refused == [Failure("user can only log in via localhost")]
    assert caplog.records[-1].__dict__["gateway_fields"]["user"] == "guest"


def test_an_anonymous_client_gets_the_configured_user() -> None:
    access = Access([], [])
    assert access.anonymous("guest", "127.0.0.1") == Principal("guest", frozenset())
    assert access.anonymous("sensors", "192.0.2.7") == Principal("sensors")


def test_an_anonymous_client_of_a_loopback_user_must_be_local(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert Access([], []).anonymous("guest", "192.0.2.7") is None
    assert caplog.records[-1].__dict__["gateway_fields"]["mechanism"] == "ANONYMOUS"


def test_a_method_names_the_plugin_that_accepted_the_login() -> None:
    access = Access([], [], methods={"SCRIPT": ScriptedMethod(Success(ANNA))}, plugin_of=lambda part: "mine")
    (accepted,) = answers(access, b"a")
    assert isinstance(accepted, Success)
    assert accepted.principal.accepted_by == "mine"


def test_failed_dialogues_of_a_plugins_method_delay_the_next() -> None:
    clock = FakeClock()
    throttle = LoginThrottle(ThrottleRules(free_attempts=3), clock.monotonic_s, clock.call_later)
    wrong = [Failure("wrong", user="anna") for _ in range(4)]
    access = Access([], [], methods={"SCRIPT": ScriptedMethod(*wrong, Success(ANNA))}, throttle=throttle)
    for _ in wrong[1:]:
        assert len(answers(access, b"a")) == 1
    late = answers(access, b"a")
    assert late == []
    clock.advance(0.25)
    assert len(late) == 1
    assert access.retry_after_s(Credentials("PLAIN", "anna", "any", peer_host=LOCAL.peer_host)) == 0.5


@pytest.mark.parametrize("principal", [Principal(5), "anna", None])  # type: ignore[arg-type]
@pytest.mark.parametrize("is_throttled", [False, True])
def test_a_success_without_a_principal_refuses_the_login(principal: object, is_throttled: bool) -> None:
    clock = FakeClock()
    throttle = LoginThrottle(ThrottleRules(), clock.monotonic_s, clock.call_later) if is_throttled else None
    method = ScriptedMethod(Success(principal))  # type: ignore[arg-type]  # of a plugin that checks no types
    (answer,) = answers(Access([], [], methods={"SCRIPT": method}, throttle=throttle), b"first")
    assert isinstance(answer, Failure)
    assert answer.reason.startswith("the method answered Success(")
