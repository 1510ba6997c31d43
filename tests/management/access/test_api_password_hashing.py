"""Clear-text passwords over HTTP: they are hashed by the threads of the verifier."""

from collections.abc import Callable
from typing import TypeVar

import pytest

from gateway.access import PasswordVerifier
from gateway.access.passwords import ARGON2ID, DEFAULT_ALGORITHM, verify_password
from gateway.definitions.model import Definitions
from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.journal.records.access import UserRecord
from gateway.management.password_hashing import hash_passwords
from tests.management.console import Console, parsed

T = TypeVar("T")


def test_imported_passwords_are_hashed_with_the_requested_algorithm(console: Console) -> None:
    users = [
        {"name": "a", "password": "one", "tags": ""},
        {"name": "b", "password": "two", "tags": "", "hashing_algorithm": DEFAULT_ALGORITHM},
        {"name": "c", "password_hash": "", "tags": ""},
    ]
    assert console.ask("POST", "/definitions", {"users": users}).status == 204
    found = console.gateway.broker.directory.user_by_name
    assert [found[name].hashing_algorithm for name in ("a", "b")] == [ARGON2ID, DEFAULT_ALGORITHM]
    assert verify_password("one", found["a"].password_hash, ARGON2ID)
    assert verify_password("two", found["b"].password_hash, DEFAULT_ALGORITHM)
    assert found["a"].scram_sha_256
    assert found["c"].password_hash == ""


def test_an_import_waits_for_the_hashing_threads_without_blocking() -> None:
    """The import waits until the threads have hashed the passwords; the reactor is free."""
    verifier, waiting = PasswordVerifier(), []

    class DelayedVerifier:
        def submit(self, work: Callable[[], T], done: Callable[[T], None], failed: Callable[[], None]) -> bool:
            waiting.append(lambda: done(work()))
            return True

    verifier._workers = DelayedVerifier()
    definitions = Definitions.model_validate({"users": [{"name": "a", "password": "one"}]})
    steps = hash_passwords(definitions, verifier)
    awaited = next(steps)
    assert awaited is not None
    assert not awaited.called
    waiting.pop()()
    assert awaited.called
    assert next(steps, None) is None
    (user,) = definitions.users
    assert user.password is None
    assert verify_password("one", user.password_hash or "", ARGON2ID)


@pytest.mark.parametrize("wanted", [{"name": "a" * 256, "tags": ""}, {"name": "a", "tags": "t" * 256}])
def test_an_invalid_user_is_refused_before_the_password_is_hashed(
    console: Console, monkeypatch: pytest.MonkeyPatch, wanted: dict[str, str]
) -> None:
    monkeypatch.setattr(PasswordVerifier, "submit", lambda *_: pytest.fail("the password is hashed"))
    answer = console.ask("PUT", f"/users/{wanted['name']}", {"password": "one", "tags": wanted["tags"]})
    assert answer.status == 400
    assert "is longer than 255" in answer.json["reason"]


def test_a_refusal_after_hashing_is_sent(console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    """A change during the hashing may cause a refusal; the threads call back outside a request."""
    finished: list[Callable[[], None]] = []

    def submit(
        verifier: PasswordVerifier, work: Callable[[], T], done: Callable[[T], None], failed: Callable[[], None]
    ) -> bool:
        finished.append(lambda: done(work()))
        return True

    def refuse(user: UserRecord) -> None:
        raise PreconditionFailed("no more users")

    monkeypatch.setattr(PasswordVerifier, "submit", submit)
    transport = console.send("PUT", "/users/a", {"password": "one", "tags": ""})
    monkeypatch.setattr(console.gateway.broker.directory, "put_user", refuse)
    finished.pop()()
    answer = parsed(transport.value())
    assert (answer.status, answer.json["reason"]) == (400, "no more users")


def test_a_hashing_failure_is_answered_with_503(console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    def submit(verifier: PasswordVerifier, work: object, done: object, failed: Callable[[], None]) -> bool:
        failed()
        return True

    monkeypatch.setattr(PasswordVerifier, "submit", submit)
    users = [{"name": "a", "password": "one", "tags": ""}]
    answers = [console.ask("PUT", "/users/a", users[0]), console.ask("POST", "/definitions", {"users": users})]
    assert [answer.status for answer in answers] == [503, 503]
    assert "a" not in console.gateway.broker.directory.user_by_name
