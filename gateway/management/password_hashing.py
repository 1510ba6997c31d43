"""Hashing of clear-text passwords in imported definitions, before they are applied and off the kernel's thread."""

from collections.abc import Generator
from functools import partial
from typing import Any

from twisted.internet.defer import Deferred

from gateway.access import PasswordVerifier
from gateway.access.passwords import hash_password
from gateway.access.scram import kept_credential
from gateway.definitions.model import Definitions, User
from gateway.management.http.errors import busy


def hash_passwords(
    definitions: Definitions, passwords: PasswordVerifier
) -> "Generator[Deferred[None] | None, None, None]":
    """Replace passwords by hashes and credentials; yield the deferred of each hash.

    :raises HttpError: if the queue of passwords to hash is full.
    """
    users = definitions.users
    for number, user in enumerate(users):
        if not user.password:
            continue
        hashed: list[dict[str, Any]] = []
        finished: Deferred[None] = Deferred(canceller=lambda _: None)
        hash_one, failed = _hasher(user, passwords.algorithm), partial(_fail, finished)
        if not passwords.submit(hash_one, partial(_finish, hashed, finished), failed):
            raise busy("the queue of passwords to hash is full")
        yield finished
        users[number] = user.model_copy(update=hashed[0])


def _hasher(user: User, algorithm: str) -> Any:
    password, chosen = user.password or "", user.hashing_algorithm or algorithm

    def hash_one() -> dict[str, Any]:
        return {
            "password": None,
            "password_hash": hash_password(password, chosen),
            "hashing_algorithm": chosen,
            "scram_sha_256": kept_credential(password, "", None),
        }

    return hash_one


def _finish(hashed: list[dict[str, Any]], finished: "Deferred[None]", update: dict[str, Any]) -> None:
    hashed.append(update)
    if not finished.called:
        finished.callback(None)


def _fail(finished: "Deferred[None]") -> None:
    if not finished.called:
        finished.errback(busy("a password could not be hashed"))
