"""Passwords in clear in definitions that are imported over HTTP: hashed by the threads that hash, not by the import."""

from collections.abc import Callable
from typing import TypeVar

from gateway.access import PasswordVerifier
from gateway.access.passwords import ARGON2ID, DEFAULT_ALGORITHM, verify_password
from gateway.definitions.model import Definitions
from gateway.management.clear_passwords import hashed_passwords
from tests.management.console import Console

T = TypeVar("T")


def test_they_are_kept_as_hashes_of_the_algorithm_that_is_asked_for(console: Console) -> None:
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


def test_an_import_waits_for_the_threads_and_holds_nothing_up() -> None:
    """The work is done when the workers do it: until then the import waits and the reactor is free."""
    verifier, waiting = PasswordVerifier(), []

    class Later:
        def submit(self, work: Callable[[], T], done: Callable[[T], None]) -> bool:
            waiting.append(lambda: done(work()))
            return True

    verifier._workers = Later()
    definitions = Definitions.model_validate({"users": [{"name": "a", "password": "one"}]})
    steps = hashed_passwords(definitions, verifier)
    awaited = next(steps)
    assert awaited is not None
    assert not awaited.called
    waiting.pop()()
    assert awaited.called
    assert next(steps, None) is None
    (user,) = definitions.users
    assert user.password is None
    assert verify_password("one", user.password_hash or "", ARGON2ID)
