"""The checks of ``gateway.testing`` accept the built-in plugins, and name what others do wrong."""

from collections.abc import Callable

import pytest

from gateway.access import Credentials, PasswordVerifier, Permissions, Principal
from gateway.api import Event, EventListener, ObservedVhost, Properties
from gateway.kernel.broker.directory import Directory
from gateway.patterns import compile_pattern
from gateway.testing import StandInVhost, check_authenticator, check_authorizer, check_event_listener, check_tracer
from gateway_auth import certificate, internal
from gateway_tracing import event_exchange, firehose, log_exchange


def directory() -> Directory:
    return Directory(lambda change: None, compile_pattern)


def test_the_built_in_plugins_keep_the_contracts() -> None:
    users = directory()
    authenticators = internal.gateway_authenticators(users, PasswordVerifier())
    assert authenticators
    for authenticator in authenticators:
        check_authenticator(authenticator)
    settings = certificate.CertificateSettings()
    for authenticator in certificate.gateway_authenticators(users, settings):
        check_authenticator(authenticator)
    for authorizer in internal.gateway_authorizers(users):
        check_authorizer(authorizer)
    check_tracer(lambda vhost: firehose.gateway_tracers(vhost)[0])


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


def test_the_built_in_event_listeners_keep_the_contract() -> None:
    settings = event_exchange.gateway_settings_model()()
    check_event_listener(lambda vhost: event_exchange.gateway_event_listeners(vhost, settings)[0])
    check_event_listener(lambda vhost: log_exchange.gateway_event_listeners(vhost)[0])


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
