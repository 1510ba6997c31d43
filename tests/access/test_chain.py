"""Authenticators and authorizers are asked in order, and a client always gets one answer."""

import logging
from collections.abc import Callable

import pytest

from gateway.access import Access, Credentials, Permissions, Principal, is_loopback
from gateway.kernel.errors import NotAllowed

Answer = Callable[[Principal | None], None]
GUEST = Principal("guest", frozenset({"administrator"}))
ANNA = Principal("anna")
HERE = Credentials("PLAIN", "anna", "secret", peer_host="127.0.0.1")
AFAR = Credentials("PLAIN", "anna", "secret", peer_host="192.0.2.7")


class Says:
    """An authenticator that always gives the same answer."""

    def __init__(self, principal: Principal | None) -> None:
        self.principal = principal
        self.asked: list[Credentials] = []

    def authenticate(self, credentials: Credentials, answer: Answer) -> None:
        self.asked.append(credentials)
        answer(self.principal)


class Waits(Says):
    """An authenticator that answers when it is told to."""

    def authenticate(self, credentials: Credentials, answer: Answer) -> None:
        self.asked.append(credentials)
        self.answer = answer


class Breaks:
    def authenticate(self, credentials: Credentials, answer: Answer) -> None:
        raise RuntimeError("the plugin is broken")


class Permits:
    def __init__(self, user: str) -> None:
        self.user = user

    def permissions(self, principal: Principal, vhost: str) -> Permissions | None:
        return Permissions(self.user, vhost, "", "", "") if principal.name == self.user else None


def answers(access: Access, credentials: Credentials = HERE) -> list[Principal | None]:
    collected: list[Principal | None] = []
    access.authenticate(credentials, collected.append)
    return collected


def test_the_first_who_knows_decides() -> None:
    last = Says(GUEST)
    assert answers(Access([Says(None), Says(ANNA), last], [])) == [ANNA]
    assert last.asked == []


def test_nobody_who_knows_is_a_refusal(caplog: pytest.LogCaptureFixture) -> None:
    assert answers(Access([Says(None), Says(None)], [])) == [None]
    assert answers(Access([], [])) == [None]
    assert "authentication refused" in caplog.text
    assert "secret" not in caplog.text + repr([record.__dict__ for record in caplog.records])


def test_an_authenticator_may_answer_later() -> None:
    slow = Waits(None)
    access = Access([slow, Says(ANNA)], [])
    collected: list[Principal | None] = []
    access.authenticate(HERE, collected.append)
    assert collected == []
    slow.answer(None)
    assert collected == [ANNA]


def test_a_second_answer_is_dropped() -> None:
    confused = Waits(None)
    collected: list[Principal | None] = []
    Access([confused], []).authenticate(HERE, collected.append)
    confused.answer(None)
    confused.answer(GUEST)
    assert collected == [None]


def test_a_broken_authenticator_refuses_and_the_next_is_asked(caplog: pytest.LogCaptureFixture) -> None:
    assert answers(Access([Breaks(), Says(ANNA)], [])) == [ANNA]
    assert answers(Access([Breaks()], [])) == [None]
    assert "the plugin is broken" in caplog.text


def test_a_loopback_user_comes_from_this_machine_or_not_at_all(caplog: pytest.LogCaptureFixture) -> None:
    access = Access([Says(GUEST)], [])
    assert answers(access, HERE) == [GUEST]
    with caplog.at_level(logging.WARNING):
        assert answers(access, AFAR) == [None]
    assert caplog.records[-1].__dict__["gateway_fields"]["reason"] == "user can only log in via localhost"
    assert answers(Access([Says(GUEST)], [], frozenset()), AFAR) == [GUEST]
    assert answers(Access([Says(ANNA)], []), AFAR) == [ANNA]


HOSTS = [
    ("127.0.0.1", True), ("127.8.0.1", True), ("::1", True), ("::ffff:127.0.0.1", True),
    ("192.0.2.7", False), ("::ffff:192.0.2.7", False), ("::", False), ("", False), ("localhost", False),
]  # fmt: skip


@pytest.mark.parametrize(("host", "is_here"), HOSTS)
def test_which_addresses_are_this_machine(host: str, is_here: bool) -> None:
    assert is_loopback(host) is is_here


def test_the_first_authorizer_who_knows_the_user_decides() -> None:
    access = Access([], [Permits("bert"), Permits("anna")])
    assert access.enter(ANNA, "shop").user == "anna"


def test_a_user_nobody_knows_may_not_enter() -> None:
    with pytest.raises(NotAllowed) as refusal:
        Access([], [Permits("bert")]).enter(ANNA, "shop")
    assert str(refusal.value) == "access to vhost 'shop' refused for user 'anna'"
