"""Passwords in clear in definitions that are imported: hashed before they are applied, off the kernel's thread."""

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
    """Put hashes and credentials in the place of passwords; yields what each of them has to wait for.

    :raises HttpError: when too many passwords wait to be hashed.
    """
    users = definitions.users
    for number, user in enumerate(users):
        if not user.password:
            continue
        hashed: list[dict[str, Any]] = []
        done: Deferred[None] = Deferred(canceller=lambda _: None)
        work, failed = _work(user, passwords.algorithm), partial(_fail, done)
        if not passwords.submit(work, partial(_end, hashed, done), failed):
            raise busy("too many passwords wait to be hashed")
        yield done
        users[number] = user.model_copy(update=hashed[0])


def _work(user: User, algorithm: str) -> Any:
    password, chosen = user.password or "", user.hashing_algorithm or algorithm

    def work() -> dict[str, Any]:
        return {
            "password": None,
            "password_hash": hash_password(password, chosen),
            "hashing_algorithm": chosen,
            "scram_sha_256": kept_credential(password, "", None),
        }

    return work


def _end(hashed: list[dict[str, Any]], done: "Deferred[None]", update: dict[str, Any]) -> None:
    hashed.append(update)
    if not done.called:
        done.callback(None)


def _fail(done: "Deferred[None]") -> None:
    if not done.called:
        done.errback(busy("a password could not be hashed"))
