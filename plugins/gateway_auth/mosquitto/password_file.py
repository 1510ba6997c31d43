"""Mosquitto's password files: ``NAME:$6$SALT$HASH`` (SHA-512) and ``NAME:$7$ROUNDS$SALT$HASH`` (PBKDF2)."""

import hashlib
import hmac
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from gateway.api import ConfigurationError

#: The most rounds of an accepted hash: about a second.
MOST_ROUNDS: Final = 2_000_000


@dataclass(frozen=True, slots=True)
class PasswordHash:
    """One hash. Without ``rounds`` it is a single SHA-512, otherwise PBKDF2 with SHA-512."""

    salt: bytes
    digest: bytes
    rounds: int = 0

    def verify(self, password: str) -> bool:
        """Whether this is the password; slow, so not for the kernel's thread."""
        given = password.encode(errors="surrogatepass")
        if self.rounds:
            found = hashlib.pbkdf2_hmac("sha512", given, self.salt, self.rounds, len(self.digest))
        else:
            found = hashlib.sha512(given + self.salt).digest()
        return hmac.compare_digest(found, self.digest)


UNKNOWN_USER: Final = PasswordHash(b"salt of no user.", bytes(64), 101)
"""Verified for unknown users, so that they take the time of Mosquitto's default hash."""


def parse_password_file(text: str) -> Mapping[str, PasswordHash]:
    """Return the hashes by user. :raises ConfigurationError: with the line, if one is invalid."""
    hashes = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, colon, stored = line.strip().partition(":")
        try:
            if not colon or not name:
                raise ValueError("expected NAME:HASH")
            hashes[name] = parse_hash(stored)
        except ValueError as error:
            raise ConfigurationError(f"line {number}: {error}") from None
    return hashes


def parse_hash(stored: str) -> PasswordHash:
    """Parse a hash. :raises ValueError: if it is invalid."""
    match stored.split("$"):
        case ["", "6", salt, digest]:
            return PasswordHash(_decoded(salt), _decoded(digest))
        case ["", "7", rounds, salt, digest]:
            return pbkdf2_hash(rounds, salt, digest)
        case _:
            raise ValueError("the password is not hashed by mosquitto_passwd: it begins with neither $6$ nor $7$")


def pbkdf2_hash(rounds: str | int, salt: str, digest: str) -> PasswordHash:
    """Return a hash of PBKDF2. :raises ValueError: if a part is invalid."""
    count = int(rounds)
    if not 1 <= count <= MOST_ROUNDS:
        raise ValueError(f"a hash must have 1 to {MOST_ROUNDS} rounds, not {count}")
    return PasswordHash(_decoded(salt), _decoded(digest), count)


def _decoded(text: str) -> bytes:
    found = b64decode(text, validate=True)
    if not found:
        raise ValueError("a hash without salt or digest")
    return found
