"""Access without a secret for local clients: warnings at the start, and the setting that disables it."""

import pytest

from gateway.access import Access, Credentials, Principal
from gateway.access.passwords import ARGON2ID, hash_password
from gateway.config import Settings
from gateway.kernel.broker.directory import Directory
from gateway.kernel.journal.records.access import UserRecord
from gateway.node.exposure import logins_without_secret
from gateway.patterns import compile_pattern
from tests.running import Gateway


def directory_with(password: str) -> Directory:
    directory = Directory(lambda change: None, compile_pattern)
    directory.put_user(UserRecord("guest", hash_password(password, ARGON2ID), ARGON2ID, [], {}))
    return directory


EXPOSED = [
    pytest.param({}, "guest", ["well-known password", "MQTT"], id="the defaults"),
    pytest.param({}, "changed", ["MQTT"], id="the password changed"),
    pytest.param({"mqtt": {"anonymous_user": ""}}, "changed", [], id="no anonymous clients either"),
    pytest.param({"loopback_users": [], "mqtt": {"anonymous_user": ""}}, "guest", [], id="not only for local clients"),
    pytest.param({"login": {"trust_loopback": False}}, "guest", [], id="behind a proxy"),
]


@pytest.mark.parametrize(("settings", "password", "warnings"), EXPOSED)
def test_each_access_without_a_secret_is_reported(
    settings: dict[str, object], password: str, warnings: list[str]
) -> None:
    lines = list(logins_without_secret(Settings.model_validate(settings), directory_with(password)))
    assert len(lines) == len(warnings)
    assert all(expected in line for expected, line in zip(warnings, lines, strict=True))


class AcceptingAuthenticator:
    def authenticate(self, credentials: Credentials, answer: object) -> None:
        answer(Principal(credentials.username))  # type: ignore[operator]


@pytest.mark.parametrize("trusts_loopback", [True, False])
def test_behind_a_proxy_a_loopback_address_has_no_privileges(trusts_loopback: bool) -> None:
    access = Access([AcceptingAuthenticator()], [], trusts_loopback=trusts_loopback)
    judged: list[Principal | None] = []
    access.authenticate(Credentials("PLAIN", "guest", "guest", peer_host="127.0.0.1"), judged.append)
    assert judged == ([Principal("guest")] if trusts_loopback else [None])
    assert (access.anonymous("guest", "::1") is not None) == trusts_loopback


def test_access_without_a_secret_is_logged_at_the_start(tmp_path: object) -> None:
    gateway = Gateway(tmp_path)  # type: ignore[arg-type]
    try:
        gateway.start()
        assert "open to clients of this machine" in gateway.log
        assert "login.trust_loopback" in gateway.log
    finally:
        gateway.end()
