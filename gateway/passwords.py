"""Password hashes as RabbitMQ keeps them: base64 of a 4 byte salt and the digest of salt and password."""

import hashlib
import hmac
import os
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Callable, Mapping
from typing import Final

SALT_SIZE: Final = 4
DEFAULT_ALGORITHM: Final = "rabbit_password_hashing_sha256"

DIGESTS: Final[Mapping[str, Callable[[bytes], "hashlib._Hash"]]] = {
    "rabbit_password_hashing_sha256": hashlib.sha256,
    "rabbit_password_hashing_sha512": hashlib.sha512,
    "rabbit_password_hashing_md5": hashlib.md5,
}
"""RabbitMQ's names of the algorithms. MD5 is what exports of RabbitMQ 3.5 and older hold."""


def hash_password(password: str, algorithm: str = DEFAULT_ALGORITHM, salt: bytes | None = None) -> str:
    """Hash a password, with a random salt unless one is given. :raises KeyError: for an unknown algorithm."""
    salt = os.urandom(SALT_SIZE) if salt is None else salt
    return b64encode(salt + _digest(salt, password, algorithm)).decode("ascii")


def verify_password(password: str, password_hash: str, algorithm: str) -> bool:
    """Tell whether this is the password that was hashed.

    A blank password or hash never verifies, and neither does a hash of an algorithm we do not know. The time taken
    does not tell how much of the digest was right.
    """
    if algorithm not in DIGESTS or not password or not password_hash:
        return False
    try:
        stored = b64decode(password_hash, validate=True)
    except NotBase64:
        return False
    return hmac.compare_digest(_digest(stored[:SALT_SIZE], password, algorithm), stored[SALT_SIZE:])


def is_password_hash(password_hash: str, algorithm: str) -> bool:
    """Tell whether a hash from elsewhere has the form its algorithm gives it."""
    try:
        size = len(b64decode(password_hash, validate=True))
    except NotBase64:
        return False
    return size == SALT_SIZE + DIGESTS[algorithm](b"").digest_size


def _digest(salt: bytes, password: str, algorithm: str) -> bytes:
    return DIGESTS[algorithm](salt + password.encode()).digest()
