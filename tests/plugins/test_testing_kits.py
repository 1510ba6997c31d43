"""The checks of ``gateway.testing`` name what a plugin does wrong."""

from collections.abc import Callable

import pytest

from gateway.access import (
    Authenticator,
    Authorizer,
    Challenge,
    Credentials,
    Permissions,
    PermissionUnknown,
    Principal,
    Success,
    Visitor,
)
from gateway.api import Event, EventListener, ObservedVhost, PendingWork, Properties
from gateway.testing import (
    StandInVhost,
    check_access_wrapper,
    check_authentication_method,
    check_authenticator,
    check_authorizer,
    check_event_listener,
    check_tracer,
)


class Door:
    """An authenticator that answers with a function."""

    def __init__(self, decide: Callable[[Credentials], object], times: int = 1) -> None:
        self.decide = decide
        self.times = times

    def authenticate(self, credentials: Credentials, answer: Callable[[Principal | None], None]) -> None:
        for _ in range(self.times):
            answer(self.decide(credentials))  # type: ignore[arg-type]


ANNA = Credentials("PLAIN", "anna", "secret")


@pytest.mark.parametrize(
    ("door", "sentence"),
    [
        (Door(lambda credentials: None), "The authenticator refused"),
        (Door(lambda credentials: Principal("anna")), "accepted Credentials.* as 'anna'"),
        (Door(lambda credentials: "anna"), "neither a Principal nor None"),
        (Door(lambda credentials: None, 2), "answer 2 times"),
        (Door(lambda credentials: 1 / 0), "raised ZeroDivisionError"),
    ],
)
def test_a_broken_authenticator_is_named(door: Door, sentence: str) -> None:
    with pytest.raises(AssertionError, match=sentence):
        check_authenticator(door, [ANNA])


def test_a_sound_authenticator_passes() -> None:
    sound = Door(lambda credentials: Principal("anna") if credentials == ANNA else None)
    check_authenticator(sound, [ANNA], [Credentials("PLAIN", "bob", "secret")])
    assert sound.decide(ANNA) == Principal("anna")


class Rights:
    """An authorizer that answers with a function."""

    def __init__(self, decide: Callable[[Principal], object]) -> None:
        self.decide = decide

    def permissions(self, principal: Principal, vhost: str) -> Permissions | None:
        return self.decide(principal)  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("rights", "sentence"),
    [
        (Rights(lambda principal: None), "returned no permissions"),
        (Rights(lambda principal: "all"), "neither Permissions nor None"),
        (Rights(lambda principal: 1 / 0), "raised ZeroDivisionError"),
    ],
)
def test_a_broken_authorizer_is_named(rights: Rights, sentence: str) -> None:
    with pytest.raises(AssertionError, match=sentence):
        check_authorizer(rights, [Principal("anna")])


class Undecided(Permissions):
    """Permissions that are not known at first, and then those of ``decide``."""

    def __init__(self, decide: Callable[[], object], *, asks: bool = True) -> None:
        super().__init__("anna", "/", "", "", "")
        self.decide = decide
        self.asks = asks
        self.was_asked = False

    @property
    def asks_elsewhere(self) -> bool:
        return self.asks

    def may(self, *arguments: object) -> bool:
        if not self.was_asked:
            self.was_asked = True
            self.answered = PendingWork()
            raise PermissionUnknown("queue 'q'", self.answered)
        return self.decide()  # type: ignore[return-value]


def test_permissions_that_are_awaited_must_be_known_after_the_answer() -> None:
    found = Undecided(lambda: True)
    check_authorizer(Rights(lambda principal: found), [Principal("anna")], wait=lambda: found.answered.finish())
    assert found.was_asked


@pytest.mark.parametrize(
    ("permissions", "sentence"),
    [
        (Undecided(lambda: True, asks=False), "nothing can be waited for"),
        (Undecided(lambda: 1), "returned 1 and then 1, not one truth value"),
        (Undecided(iter([True, False]).__next__), "returned True and then False"),
        (Undecided(lambda: 1 / 0), "raised ZeroDivisionError"),
    ],
)
def test_broken_permissions_are_named(permissions: Undecided, sentence: str) -> None:
    with pytest.raises(AssertionError, match=sentence):
        check_authorizer(Rights(lambda principal: permissions), wait=lambda: permissions.answered.finish())


class Method:
    """An authentication method whose dialogues answer with a function."""

    def __init__(self, decide: Callable[[bytes], object]) -> None:
        self.decide = decide

    def begin(self, visitor: Visitor) -> "Method":
        return self

    def step(self, data: bytes, answer: Callable[[object], None]) -> None:
        answer(self.decide(data))


@pytest.mark.parametrize(
    ("method", "sentence"),
    [
        (Method(lambda data: Challenge()), "ended with .*not with Success"),
        (Method(lambda data: Success(Principal("anna")) if data == b"key" else Challenge()), "has no end"),
        (Method(lambda data: True), "answered True, which is no Challenge"),
        (Method(lambda data: 1 / 0), "raised ZeroDivisionError"),
    ],
)
def test_a_broken_authentication_method_is_named(method: Method, sentence: str) -> None:
    with pytest.raises(AssertionError, match=sentence):
        check_authentication_method(method, [[b"key"]])


class Generous:
    """A wrapper that changes what the wrapped objects answer."""

    def __init__(self, *, logins: bool, rights: bool) -> None:
        self.logins = logins
        self.rights = rights

    def authenticator(self, plugin: str, asked: Authenticator) -> Authenticator:
        return Door(lambda credentials: Principal(credentials.username)) if self.logins else asked

    def authorizer(self, plugin: str, asked: Authorizer) -> Authorizer:
        everything = Permissions("bert", "/", ".*", ".*", ".*")
        return Rights(lambda principal: everything) if self.rights else asked


@pytest.mark.parametrize(
    ("wrapper", "sentence"),
    [
        (Generous(logins=True, rights=False), "accepted Credentials.* as 'anna'"),
        (Generous(logins=False, rights=True), "gives permissions to a user"),
    ],
)
def test_a_wrapper_that_changes_answers_is_named(wrapper: Generous, sentence: str) -> None:
    with pytest.raises(AssertionError, match=sentence):
        check_access_wrapper(wrapper, "auth-http")
    check_access_wrapper(Generous(logins=False, rights=False), "auth-http")


class Copying:
    """A tracer that publishes too early, or returns a value."""

    def __init__(self, vhost: StandInVhost, *, returns: object = None) -> None:
        self.returns = returns

    def published(self, *arguments: object) -> object:
        return self.returns

    def delivered(self, *arguments: object) -> object:
        raise KeyError("lost")


def test_a_broken_tracer_is_named() -> None:
    with pytest.raises(AssertionError, match=r"published\(\) returned 1"):
        check_tracer(lambda vhost: Copying(vhost, returns=1))  # type: ignore[arg-type, return-value]
    with pytest.raises(AssertionError, match=r"delivered\(\) raised KeyError"):
        check_tracer(Copying)  # type: ignore[arg-type]


class Noting(EventListener):
    """An event listener that fails in one way."""

    def __init__(self, vhost: ObservedVhost, fails: str) -> None:
        self.fails = fails
        if fails == "early":
            vhost.publish("e", "k", Properties(), b"")

    def on_event(self, event: Event) -> None:
        if self.fails == "modifies":
            event.details["seen"] = True  # type: ignore[index]
        if self.fails == "raises":
            raise KeyError("user")
        return 1 if self.fails == "answers" else None  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("fails", "sentence"),
    [
        ("early", "published a message before the first event"),
        ("modifies", "modified the event 'connection.created'"),
        ("raises", r"on_event\(\) raised KeyError\('user'\) for the event"),
        ("answers", r"on_event\(\) returned 1; a listener returns nothing"),
    ],
)
def test_a_broken_event_listener_is_named(fails: str, sentence: str) -> None:
    with pytest.raises(AssertionError, match=sentence):
        check_event_listener(lambda vhost: Noting(vhost, fails))
