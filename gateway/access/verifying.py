"""Password verification and hashing off the kernel's thread, with a cache of correct passwords.

The cache holds keyed digests of user, hash and password, with a random key per process. A changed password has another
hash, so its old entry never matches. Wrong passwords are not cached. A refusal always takes the time of one digest and
one argon2id verification, whether the user exists or not.
"""

import hmac
import secrets
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Protocol, TypeVar

from gateway.access.hashing import Inline, Workers
from gateway.access.once import call_each
from gateway.access.passwords import ARGON2ID, verify_password, verify_unknown_user
from gateway.kernel.journal.records.access import UserRecord
from gateway.logs import StructuredLog

_log: Final = StructuredLog("access")

REMEMBERED: Final = 10_000
"""The size of the cache of correct passwords."""

T = TypeVar("T")
PasswordCallback = Callable[[bool], None]


class PasswordCheck(Protocol):
    """Verifies passwords of internal users. Passed to authenticator plugins."""

    def verify(self, password: str, name: str, user: UserRecord | None, answer: PasswordCallback) -> None:
        """Call ``answer`` once, now or later, on the kernel's thread.

        ``user`` is ``None`` if no user ``name`` exists; that takes as long as a wrong password.
        """
        ...

    def submit(self, work: Callable[[], T], done: Callable[[T], None], failed: Callable[[], None]) -> bool:
        """Run slow hashing in a thread, then call ``done`` with its result, or ``failed``, on the kernel's thread.

        Return ``False`` if too much waits; then neither is called.
        """
        ...


@dataclass(slots=True)
class _PendingCheck:
    """A verification in progress and the callbacks that wait for it."""

    callbacks: list[PasswordCallback] = field(default_factory=list)


class PasswordVerifier:
    """The password verification of one node. ``algorithm`` is the hash algorithm of new passwords."""

    def __init__(
        self,
        workers: Workers | None = None,
        now: Callable[[], float] = lambda: 0.0,
        remember_s: float = 0.0,
        algorithm: str = ARGON2ID,
    ) -> None:
        self.algorithm = algorithm
        self._workers: Workers = workers or Inline()
        self._now = now
        self._remember_s = remember_s
        self._key = secrets.token_bytes(32)
        self._until_by_digest: OrderedDict[bytes, float] = OrderedDict()
        self._pending: dict[bytes, _PendingCheck] = {}

    def verify(self, password: str, name: str, user: UserRecord | None, answer: PasswordCallback) -> None:
        """Call ``answer`` once, now or later: whether this is the user's password."""
        if not password:
            answer(False)  # an empty password is never valid
            return
        kept, algorithm = (user.password_hash, user.hashing_algorithm) if user is not None else ("", "")
        has_argon2 = algorithm == ARGON2ID and kept != ""
        if not has_argon2 and verify_password(password, kept, algorithm):
            answer(True)
            return
        digest = self._digest(name, algorithm, kept, password)
        if has_argon2 and self._remembers(digest):
            answer(True)
            return
        check = self._pending.get(digest)
        if check is not None:
            check.callbacks.append(answer)
            return
        work = partial(_verify_argon2, password, kept) if has_argon2 else partial(_refuse, password, bool(kept))
        self._pending[digest] = _PendingCheck([answer])
        if not self._workers.submit(work, partial(self._verified, digest), partial(self._verified, digest, False)):
            del self._pending[digest]
            _log.warning("login refused: the queue of password checks is full")
            answer(False)

    def submit(self, work: Callable[[], T], done: Callable[[T], None], failed: Callable[[], None]) -> bool:
        """Hash a password off the kernel's thread, then call ``done`` or ``failed`` on it.

        Return ``False`` if the queue is full.
        """
        return self._workers.submit(work, done, failed)

    # Cache

    def _verified(self, digest: bytes, is_right: bool) -> None:
        if is_right and self._remember_s > 0:
            self._until_by_digest[digest] = self._now() + self._remember_s
            if len(self._until_by_digest) > REMEMBERED:
                self._until_by_digest.popitem(last=False)
        call_each(self._pending.pop(digest).callbacks, is_right)

    def _remembers(self, digest: bytes) -> bool:
        until = self._until_by_digest.get(digest)
        if until is not None and self._now() >= until:
            del self._until_by_digest[digest]
            return False
        return until is not None

    def _digest(self, *parts: str) -> bytes:
        """Return the keyed digest of texts; length prefixes separate them."""
        encoded = [part.encode(errors="surrogatepass") for part in parts]
        return hmac.digest(self._key, b"".join(b"%d:%b" % (len(part), part) for part in encoded), "sha256")


def _verify_argon2(password: str, kept: str) -> bool:
    verify_unknown_user(password, with_digest=True, with_argon2=False)
    return verify_password(password, kept, ARGON2ID)


def _refuse(password: str, has_digest: bool) -> bool:
    """Take the remaining time of a refusal; for a user with a digest, that was compared already."""
    verify_unknown_user(password, with_digest=not has_digest, with_argon2=True)
    return False
