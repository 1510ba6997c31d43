"""Authenticators and authorizers are called in order, and each login gets one answer."""

import logging
from collections.abc import Callable

import pytest

from gateway.access import Access, Credentials, Permissions, Principal, is_loopback
from gateway.kernel.errors import NotAllowed

Answer = Callable[[Principal | None], None]
GUEST = Principal("guest", frozenset({"administrator"}))
ANNA = Principal("anna")
LOCAL = Credentials("PLAIN", "anna", "secret", peer_host="127.0.0.1")
REMOTE = Credentials("PLAIN", "anna", "secret", peer_host="192.0.2.7")


class FixedAuthenticator:
    """An authenticator with a fixed answer."""

    def __init__(self, principal: Principal | None) -> None:
        self.principal = principal
        self.asked: list[Credentials] = []

    def authenticate(self, credentials: Credentials, answer: Answer) -> None:
        self.asked.append(credentials)
        answer(self.principal)


class DelayedAuthenticator(FixedAuthenticator):
    """An authenticator that answers when the test calls it."""

    def authenticate(self, credentials: Credentials, answer: Answer) -> None:
        self.asked.append(credentials)
        self.answer = answer


class FailingAuthenticator:
    def authenticate(self, credentials: Credentials, answer: Answer) -> None:
        raise RuntimeError("the plugin is broken")


class SingleUserAuthorizer:
    def __init__(self, user: str) -> None:
        self.user = user

    def permissions(self, principal: Principal, vhost: str) -> Permissions | None:
        return Permissions(self.user, vhost, "", "", "") if principal.name == self.user else None


def answers(access: Access, credentials: Credentials = LOCAL) -> list[Principal | None]:
    collected: list[Principal | None] = []
    access.authenticate(credentials, collected.append)
    return collected


def test_the_first_authenticator_that_accepts_decides() -> None:
    last = FixedAuthenticator(GUEST)
    assert answers(Access([FixedAuthenticator(None), FixedAuthenticator(ANNA), last], [])) == [ANNA]
    assert last.asked == []


def test_a_login_that_no_authenticator_accepts_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    assert answers(Access([FixedAuthenticator(None), FixedAuthenticator(None)], [])) == [None]
    assert answers(Access([], [])) == [None]
    assert "authentication refused" in caplog.text
    assert "secret" not in caplog.text + repr([record.__dict__ for record in caplog.records])


def test_an_authenticator_may_answer_later() -> None:
    slow = DelayedAuthenticator(None)
    access = Access([slow, FixedAuthenticator(ANNA)], [])
    collected: list[Principal | None] = []
    access.authenticate(LOCAL, collected.append)
    assert collected == []
    slow.answer(None)
    assert collected == [ANNA]


def test_a_second_answer_is_ignored() -> None:
    confused = DelayedAuthenticator(None)
    collected: list[Principal | None] = []
    Access([confused], []).authenticate(LOCAL, collected.append)
    confused.answer(None)
    confused.answer(GUEST)
    assert collected == [None]


def test_a_failing_authenticator_refuses_and_the_next_is_called(caplog: pytest.LogCaptureFixture) -> None:
    assert answers(Access([FailingAuthenticator(), FixedAuthenticator(ANNA)], [])) == [ANNA]
    assert answers(Access([FailingAuthenticator()], [])) == [None]
    assert "the plugin is broken" in caplog.text


def test_a_loopback_user_must_be_local(caplog: pytest.LogCaptureFixture) -> None:
    access = Access([FixedAuthenticator(GUEST)], [])
    assert answers(access, LOCAL) == [GUEST]
    with caplog.at_level(logging.WARNING):
        assert answers(access, REMOTE) == [None]
    assert caplog.records[-1].__dict__["gateway_fields"]["reason"] == "user can only log in via localhost"
    assert answers(Access([FixedAuthenticator(GUEST)], [], frozenset()), REMOTE) == [GUEST]
    assert answers(Access([FixedAuthenticator(ANNA)], []), REMOTE) == [ANNA]


HOSTS = [
    ("127.0.0.1", True), ("127.8.0.1", True), ("::1", True), ("::ffff:127.0.0.1", True),
    ("192.0.2.7", False), ("::ffff:192.0.2.7", False), ("::", False), ("", False), ("localhost", False),
]  # fmt: skip


@pytest.mark.parametrize(("host", "is_here"), HOSTS)
def test_loopback_addresses(host: str, is_here: bool) -> None:
    assert is_loopback(host) is is_here


def test_the_first_authorizer_with_permissions_decides() -> None:
    access = Access([], [SingleUserAuthorizer("bert"), SingleUserAuthorizer("anna")])
    assert access.enter(ANNA, "shop").user == "anna"


def test_a_user_without_permissions_is_refused() -> None:
    with pytest.raises(NotAllowed) as refusal:
        Access([], [SingleUserAuthorizer("bert")]).enter(ANNA, "shop")
    assert str(refusal.value) == "access to vhost 'shop' refused for user 'anna'"


class OwnAuthorizer:
    """Gives every user of its plugin's permissions; the user in them is the plugin's name."""

    def __init__(self, plugin: str) -> None:
        self.plugin = plugin

    def permissions(self, principal: Principal, vhost: str) -> Permissions | None:
        return Permissions(self.plugin, vhost, "", "", "")


class OwnAuthenticator:
    """Accepts the user with the name of its plugin."""

    def __init__(self, plugin: str) -> None:
        self.plugin = plugin

    def authenticate(self, credentials: Credentials, answer: Answer) -> None:
        answer(Principal(credentials.username) if credentials.username == self.plugin else None)


@pytest.mark.parametrize(
    ("authenticating", "authorizing", "decides"),
    [
        ("ldap internal", "ldap internal", {"ldap": "ldap", "internal": "internal"}),
        ("ldap internal", "internal", {"ldap": "internal", "internal": "internal"}),
        ("internal", "http internal", {"internal": "http"}),
        ("internal", "internal http", {"internal": "internal"}),
        ("ldap http", "http", {"ldap": "http", "http": "http"}),
        ("certificate", "ldap internal", {"certificate": "ldap"}),
    ],
)
def test_the_plugin_that_accepted_a_login_decides_on_permissions(
    authenticating: str, authorizing: str, decides: dict[str, str]
) -> None:
    access = Access(
        [OwnAuthenticator(plugin) for plugin in authenticating.split()],
        [OwnAuthorizer(plugin) for plugin in authorizing.split()],
        plugin_of=lambda part: part.plugin,  # type: ignore[attr-defined]
    )
    found = {}
    for user in decides:
        principals: list[Principal | None] = []
        access.authenticate(Credentials("PLAIN", user, "any"), principals.append)
        (principal,) = principals
        assert principal is not None
        found[user] = access.enter(principal, "shop").user
    assert found == decides


def test_an_authenticator_may_name_the_plugin_whose_permissions_apply() -> None:
    named = Principal("anna", accepted_by="internal")
    authorizers = [OwnAuthorizer("ldap"), OwnAuthorizer("internal")]
    access = Access(
        [FixedAuthenticator(named), OwnAuthenticator("internal"), OwnAuthenticator("ldap")],
        authorizers,
        plugin_of=lambda part: getattr(part, "plugin", "certificate"),
    )
    principals: list[Principal | None] = []
    access.authenticate(LOCAL, principals.append)
    (principal,) = principals
    assert principal is not None
    assert access.enter(principal, "shop").user == "internal"


class Voucher(Principal):
    """A principal of a plugin's own kind."""


@pytest.mark.parametrize("kind", [Principal, Voucher])
def test_a_principal_of_a_client_differs_in_its_client_only(kind: type[Principal]) -> None:
    before = kind("anna", frozenset({"policymaker"}), "192.0.2.7", "grant", 7.0, "auth-own")
    after = before.of_client("sensor-1")
    assert type(after) is kind
    assert after.client_id == "sensor-1"
    assert after.of_client("") == before
    fields = ("name", "tags", "peer_host", "grant", "expires_at_s", "accepted_by")
    assert [getattr(after, name) for name in fields] == [getattr(before, name) for name in fields]


@pytest.mark.parametrize("is_late", [False, True])
@pytest.mark.parametrize("name", [5, None])
def test_a_principal_without_a_name_refuses_the_login(name: object, is_late: bool) -> None:
    seen: list[str] = []
    slow = DelayedAuthenticator(None)
    wrong = Principal(name)  # type: ignore[arg-type]  # of a plugin that checks no types
    first = slow if is_late else FixedAuthenticator(wrong)
    access = Access([first], [], on_fault=lambda kind, part, error: seen.append(f"{kind}: {error}"))
    collected: list[Principal | None] = []
    access.authenticate(LOCAL, collected.append)
    if is_late:
        slow.answer(wrong)
    assert collected == [None]
    assert len(seen) == 1
    assert seen[0].startswith("authenticator: the authenticator answered Principal(")


def test_a_principal_without_a_plugin_gets_that_of_its_authenticator() -> None:
    anna = Principal("anna", accepted_by=None)  # type: ignore[arg-type]  # of a plugin that checks no types
    (found,) = answers(Access([FixedAuthenticator(anna)], [], plugin_of=lambda part: "acme"))
    assert found is not None
    assert found.accepted_by == "acme"
