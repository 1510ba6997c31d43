"""What is open to whoever seems to be on this machine: said at the start, and closed by one setting."""

import pytest

from gateway.access import Access, Credentials, Principal
from gateway.access.passwords import ARGON2ID, hash_password
from gateway.config import Settings
from gateway.kernel.broker.directory import Directory
from gateway.kernel.journal.records import UserRecord
from gateway.node.exposure import logins_without_secret
from gateway.patterns import compile_pattern
from tests.running import Gateway


def directory_with(password: str) -> Directory:
    directory = Directory(lambda change: None, compile_pattern)
    directory.put_user(UserRecord("guest", hash_password(password, ARGON2ID), ARGON2ID, [], {}))
    return directory


DOORS = [
    pytest.param({}, "guest", ["well-known password", "MQTT"], id="as it is at first"),
    pytest.param({}, "changed", ["MQTT"], id="the password changed"),
    pytest.param({"mqtt": {"anonymous_user": ""}}, "changed", [], id="and no anonymous clients"),
    pytest.param({"loopback_users": [], "mqtt": {"anonymous_user": ""}}, "guest", [], id="not about this machine"),
    pytest.param({"login": {"trust_loopback": False}}, "guest", [], id="behind a proxy"),
]


@pytest.mark.parametrize(("settings", "password", "doors"), DOORS)
def test_each_way_in_without_a_secret_is_told(settings: dict[str, object], password: str, doors: list[str]) -> None:
    told = list(logins_without_secret(Settings.model_validate(settings), directory_with(password)))
    assert len(told) == len(doors)
    assert all(door in line for door, line in zip(doors, told, strict=True))


class Everyone:
    def authenticate(self, credentials: Credentials, answer: object) -> None:
        answer(Principal(credentials.username))  # type: ignore[operator]


@pytest.mark.parametrize("trusts_loopback", [True, False])
def test_behind_a_proxy_an_address_of_this_machine_counts_for_nothing(trusts_loopback: bool) -> None:
    access = Access([Everyone()], [], trusts_loopback=trusts_loopback)
    judged: list[Principal | None] = []
    access.authenticate(Credentials("PLAIN", "guest", "guest", peer_host="127.0.0.1"), judged.append)
    assert judged == ([Principal("guest")] if trusts_loopback else [None])
    assert (access.anonymous("guest", "::1") is not None) == trusts_loopback


def test_the_log_says_at_the_start_what_is_open(tmp_path: object) -> None:
    gateway = Gateway(tmp_path)  # type: ignore[arg-type]
    try:
        gateway.start()
        assert "open to clients of this machine" in gateway.log
        assert "login.trust_loopback" in gateway.log
    finally:
        gateway.end()
