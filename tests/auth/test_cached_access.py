"""The cache before other plugins keeps answers for their time, is bounded, and forgets when it is told to."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.api import (
    Authenticator,
    ConfigurationError,
    Credentials,
    Operation,
    Permissions,
    PermissionUnknown,
    Principal,
)
from gateway.testing import check_authenticator, check_metric_source, sample_request
from gateway_auth.cache.answers import KeptAnswers
from gateway_auth.cache.logins import CachedAuthenticator
from gateway_auth.cache.permissions import CachedAuthorizer
from gateway_auth.cache.plugin import AccessCache, CacheReport, gateway_access_wrappers
from gateway_auth.cache.settings import CacheSettings


class Clock:
    """A time that a test sets."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


class Backend:
    """Accepts one password, and permits what begins with ``open``; counts what it is asked."""

    def __init__(self) -> None:
        self.logins = 0
        self.entered = 0
        self.decisions = 0
        self.forgotten = 0
        self.principal = Principal("anna")
        self.is_open = True

    def authenticate(self, credentials: Credentials, answer: Callable[[Principal | None], None]) -> None:
        self.logins += 1
        answer(self.principal if credentials.password == "right" else None)

    def permissions(self, principal: Principal, vhost: str) -> Permissions | None:
        self.entered += 1
        return Decided(self, principal.name, vhost) if self.is_open else None

    def forget(self) -> None:
        self.forgotten += 1


class Decided(Permissions):
    __slots__ = ("_backend",)

    def __init__(self, backend: Backend, user: str, vhost: str) -> None:
        super().__init__(user, vhost, "", "", "")
        self._backend = backend

    def may(self, operation: Operation, name: str, kind: str = "exchange") -> bool:
        self._backend.decisions += 1
        if name == "unknown":
            raise PermissionUnknown("it")
        return name.startswith("open")


@pytest.fixture
def backend() -> Backend:
    return Backend()


def settings(**changes: Any) -> CacheSettings:
    return CacheSettings(plugins=["auth-http"], **{"ttl_s": 30.0, "refusal_ttl_s": 5.0, **changes})


def cached_logins(backend: Backend, clock: Clock, **changes: Any) -> Authenticator:
    return CachedAuthenticator(backend, settings(**changes), clock, clock)


def logs_in(authenticator: Authenticator, password: str = "right", host: str = "") -> bool:
    answers: list[Principal | None] = []
    authenticator.authenticate(Credentials("PLAIN", "anna", password, peer_host=host), answers.append)
    (answer,) = answers
    return answer is not None


def test_answers_to_logins_hold_for_their_time(backend: Backend) -> None:
    clock = Clock()
    logins = cached_logins(backend, clock)
    found = []
    for at, password in ((0, "right"), (29, "right"), (29, "wrong"), (33, "wrong"), (34, "wrong"), (34, "right")):
        clock.now_s = at
        found.append((logs_in(logins, password), backend.logins))
    assert found == [(True, 1), (True, 1), (False, 2), (False, 2), (False, 3), (True, 4)]


def test_refusals_are_not_kept_by_default(backend: Backend) -> None:
    logins = CachedAuthenticator(backend, CacheSettings(plugins=["auth-http"]), Clock(), Clock())
    assert [logs_in(logins, "wrong") for _ in range(2)] == [False, False]
    assert backend.logins == 2


def test_a_login_is_not_kept_longer_than_it_lasts(backend: Backend) -> None:
    clock = Clock()
    backend.principal = Principal("anna", expires_at_s=10.0)
    logins = cached_logins(backend, clock)
    logs_in(logins)
    for at, asked in ((9.0, 1), (10.0, 2), (11.0, 3)):
        clock.now_s = at
        assert logs_in(logins)
        assert backend.logins == asked


def test_another_address_is_another_login(backend: Backend) -> None:
    logins = cached_logins(backend, Clock())
    assert logs_in(logins, host="192.0.2.1")
    assert logs_in(logins, host="192.0.2.2")
    assert backend.logins == 2


def test_the_answer_to_a_login_from_before_forgetting_is_not_kept() -> None:
    class Slow(Backend):
        def authenticate(self, credentials: Credentials, answer: Callable[[Principal | None], None]) -> None:
            self.logins += 1
            self.answer = answer

    backend, answers = Slow(), list[Principal | None]()
    logins = CachedAuthenticator(backend, settings(), Clock(), Clock())
    logins.authenticate(Credentials("PLAIN", "anna", "right"), answers.append)
    logins.forget()
    backend.answer(Principal("anna"))
    assert answers == [Principal("anna")]
    logins.authenticate(Credentials("PLAIN", "anna", "right"), answers.append)
    assert backend.logins == 2


def test_the_cache_keeps_the_contract_of_an_authenticator(backend: Backend) -> None:
    check_authenticator(cached_logins(backend, Clock()), accepted=[Credentials("PLAIN", "anna", "right")])


def test_decisions_hold_for_their_time(backend: Backend) -> None:
    clock = Clock()
    permissions = CachedAuthorizer(backend, settings(), clock).permissions(Principal("anna"), "/")
    assert permissions is not None
    found = []
    for at, name in ((0, "open-1"), (29, "open-1"), (29, "shut"), (33, "shut"), (34, "shut"), (34, "open-1")):
        clock.now_s = at
        found.append((permissions.may(Operation.READ, name), backend.decisions))
    assert found == [(True, 1), (True, 1), (False, 2), (False, 2), (False, 3), (True, 4)]


def test_an_awaited_decision_is_not_kept(backend: Backend) -> None:
    permissions = CachedAuthorizer(backend, settings(), Clock()).permissions(Principal("anna"), "/")
    assert permissions is not None
    for asked in (1, 2):
        with pytest.raises(PermissionUnknown):
            permissions.may(Operation.READ, "unknown")
        assert backend.decisions == asked


def test_the_access_to_a_virtual_host_is_kept(backend: Backend) -> None:
    clock = Clock()
    authorizer = CachedAuthorizer(backend, settings(), clock)
    backend.is_open = False
    found = []
    for at, is_open in ((0, False), (4, True), (5, True), (6, False)):
        clock.now_s, backend.is_open = at, is_open
        found.append((authorizer.permissions(Principal("anna"), "/") is not None, backend.entered))
    assert found == [(False, 1), (False, 1), (True, 2), (True, 2)]


def test_permissions_that_came_with_the_login_are_not_kept(backend: Backend) -> None:
    authorizer = CachedAuthorizer(backend, settings(), Clock())
    for _ in range(2):
        authorizer.permissions(Principal("anna", grant="a token"), "/")
    assert backend.entered == 2


@pytest.mark.parametrize(("method", "forgotten"), [("permissions_changed", 0), ("forget", 1)])
def test_permissions_are_asked_for_again_after_a_change(backend: Backend, method: str, forgotten: int) -> None:
    authorizer = CachedAuthorizer(backend, settings(), Clock())
    permissions = authorizer.permissions(Principal("anna"), "/")
    assert permissions is not None
    assert permissions.may(Operation.READ, "open")
    getattr(authorizer, method)()
    authorizer.permissions(Principal("anna"), "/")
    assert permissions.may(Operation.READ, "open")
    assert (backend.entered, backend.decisions, backend.forgotten) == (2, 2, forgotten)


def test_only_the_plugins_of_the_settings_are_wrapped(backend: Backend) -> None:
    cache = AccessCache("/", settings())
    assert cache.authenticator("auth-ldap", backend) is backend
    assert cache.authorizer("auth-ldap", backend) is backend
    assert isinstance(cache.authenticator("auth-http", backend), CachedAuthenticator)
    assert isinstance(cache.authorizer("auth-http", backend), CachedAuthorizer)
    cache.close()


def test_the_numbers_are_those_of_the_cache_in_use_while_plugins_change(backend: Backend) -> None:
    def rows() -> list[object]:
        return list(CacheReport("/").rows(sample_request()))

    assert rows() == []
    used, refused = AccessCache("/", settings()), AccessCache("/", settings())
    logs_in(used.authenticator("auth-http", backend))
    refused.authenticator("auth-http", backend)
    refused.close()
    assert rows() == [{"plugin": "auth-http", "kind": "logins", "kept": 1, "hits": 0, "misses": 1}]
    check_metric_source(CacheReport("/"))
    used.close()
    assert rows() == []


@pytest.mark.parametrize(
    ("plugins", "there"), [((), "there is none"), (("auth-cache",), "there is none"), (("a", "b"), "there are a, b")]
)
def test_a_plugin_that_is_not_enabled_is_refused(plugins: tuple[str, ...], there: str) -> None:
    with pytest.raises(ConfigurationError, match=f"plugins: 'auth-http' is not an access plugin .*; {there}"):
        gateway_access_wrappers("/", plugins, settings())


STEPS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 10), st.integers(0, 20)))


@given(STEPS, st.integers(1, 4))
def test_what_is_found_is_the_last_answer_and_its_time_is_not_over(
    steps: list[tuple[int, int, int]], most: int
) -> None:
    clock = Clock()
    kept: KeptAnswers[int, int] = KeptAnswers(most, clock)
    last: dict[int, tuple[int, float]] = {}
    for number, (key, passes_s, ttl_s) in enumerate(steps):
        clock.now_s += passes_s
        found = kept.find(key)
        if found is not None:
            answer, until_s = last[key]
            assert found.answer == answer
            assert clock.now_s < until_s
        kept.keep(key, number, ttl_s)
        if ttl_s > 0:
            last[key] = number, clock.now_s + ttl_s
            assert kept.find(key) is not None
        assert len(kept) <= most
