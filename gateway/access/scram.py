"""Stored credentials for SCRAM-SHA-256 (RFC 5802, RFC 7677); they can verify a proof but not create one.

Stored as ``SCRAM-SHA-256$<iterations>:<salt>$<stored key>:<server key>`` with the bytes in base64, a form that other
servers use too.
"""

import hashlib
import hmac
import os
import re
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from dataclasses import dataclass
from typing import Final

from gateway.access.saslprep import saslprep
from gateway.kernel.journal.records.access import UserRecord

SCRAM_SHA_256: Final = "SCRAM-SHA-256"
KEY_SIZE: Final = 32
SALT_SIZE: Final = 16

ITERATIONS: Final = 4096
"""The minimum of RFC 7677. More would not add security, because the user's other hash is a single round.

It would also slow down each login on a small device. The broker spends about a millisecond when the password is set.
"""

LONGEST_PREPARED: Final = 1024
"""The longest password that is normalized by SASLprep, in characters; each takes a few microseconds."""

MOST_ITERATIONS: Final = 1_000_000
"""The maximum iteration count of an imported credential; clients have to compute it."""

_FORM: Final = re.compile(r"SCRAM-SHA-256\$(\d{1,7}):([^$:]+)\$([^$:]+):([^$:]+)", re.ASCII)


@dataclass(frozen=True, slots=True)
class ScramCredential:
    """One user's salt and keys."""

    iterations: int
    salt: bytes
    stored_key: bytes
    server_key: bytes

    @classmethod
    def parse(cls, text: str) -> "ScramCredential":
        """Parse the stored form. :raises ValueError: if it is invalid."""
        found = _FORM.fullmatch(text)
        if found is None:
            raise ValueError("not of the form SCRAM-SHA-256$<iterations>:<salt>$<stored key>:<server key>")
        iterations = int(found[1])
        if not ITERATIONS <= iterations <= MOST_ITERATIONS:
            raise ValueError(f"{iterations} iterations; the allowed range is {ITERATIONS} to {MOST_ITERATIONS}")
        try:
            salt, stored_key, server_key = (b64decode(part, validate=True) for part in found.groups()[1:])
        except NotBase64:
            raise ValueError("salt or key is not base64") from None
        if len(stored_key) != KEY_SIZE or len(server_key) != KEY_SIZE:
            raise ValueError(f"stored key and server key must have {KEY_SIZE} bytes")
        return cls(iterations, salt, stored_key, server_key)

    def __str__(self) -> str:
        salt, stored_key, server_key = (
            b64encode(part).decode("ascii") for part in (self.salt, self.stored_key, self.server_key)
        )
        return f"{SCRAM_SHA_256}${self.iterations}:{salt}${stored_key}:{server_key}"


def scram_credential(password: str, salt: bytes | None = None, iterations: int = ITERATIONS) -> ScramCredential:
    """Derive a credential from a password, with a random salt unless one is given."""
    salt = os.urandom(SALT_SIZE) if salt is None else salt
    salted = hashlib.pbkdf2_hmac("sha256", _prepared(password), salt, iterations)
    stored_key = hashlib.sha256(mac(salted, b"Client Key")).digest()
    return ScramCredential(iterations, salt, stored_key, mac(salted, b"Server Key"))


def kept_credential(password: str | None, password_hash: str, known: UserRecord | None) -> str:
    """Return the stored credential of a user after a change, in text form; empty for none.

    With a hash instead of a password no credential can be derived. If it is the hash of the ``known`` user, only tags
    or limits change and the old credential is kept.
    """
    if password:
        return str(scram_credential(password))
    is_unchanged = known is not None and password_hash != "" and known.password_hash == password_hash
    return known.scram_sha_256 if known is not None and is_unchanged else ""


def mac(key: bytes, text: bytes) -> bytes:
    """Return the HMAC of RFC 5802 with SHA-256."""
    return hmac.digest(key, text, "sha256")


def _prepared(password: str) -> bytes:
    """Encode a password. One that SASLprep prohibits stays unchanged, so that its user can log in as with PLAIN."""
    try:
        return (saslprep(password) if len(password) <= LONGEST_PREPARED else password).encode()
    except ValueError:
        return password.encode()
