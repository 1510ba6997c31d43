"""Password hashes: argon2id for new passwords, and RabbitMQ's formats for imported hashes.

RabbitMQ stores the base64 of a 4 byte salt and the digest of salt and password. An argon2id hash has the form of the
reference implementation, ``$argon2id$v=19$m=...,t=...,p=...$salt$hash``, which contains its cost.
"""

import hashlib
import hmac
import os
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from typing import Final

from argon2 import PasswordHasher
from argon2.exceptions import Argon2Error, InvalidHashError

SALT_SIZE: Final = 4

DEFAULT_ALGORITHM: Final = "rabbit_password_hashing_sha256"
"""The algorithm of an imported hash without an algorithm name, as in RabbitMQ."""

ARGON2ID: Final = "argon2id"
"""The default algorithm of new passwords."""

DIGESTS: Final[Mapping[str, Callable[[bytes], "hashlib._Hash"]]] = {
    "rabbit_password_hashing_sha256": hashlib.sha256,
    "rabbit_password_hashing_sha512": hashlib.sha512,
    "rabbit_password_hashing_md5": hashlib.md5,
}
"""RabbitMQ's algorithm names. MD5 occurs in exports of RabbitMQ 3.5 and older."""

ALGORITHMS: Final = (*DIGESTS, ARGON2ID)
"""All algorithms that can be verified."""

#: 19 MiB, two passes, one lane: the minimum of OWASP's password storage cheat sheet. About 30 ms.
_HASHER: Final = PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1, hash_len=32, salt_len=16)

#: The maximum cost of verifying an imported hash, in KiB and passes.
_MOST_MEMORY: Final = 256 * 1024
_MOST_PASSES: Final = 16
_MOST_LANES: Final = 16

#: The maximum length of a hash, in characters.
_LONGEST_ARGON2: Final = 512
_ARGON2: Final = re.compile(
    r"\$argon2id\$v=19\$m=(\d{1,7}),t=(\d{1,3}),p=(\d{1,3})\$[A-Za-z0-9+/]{11,}\$[A-Za-z0-9+/]{16,}", re.ASCII
)

#: A random hash with the cost of a new one, against which passwords of unknown users are verified.
_UNKNOWN_USER_HASH: Final = (
    "$argon2id$v=19$m=19456,t=2,p=1$"
    + b64encode(os.urandom(16)).decode().rstrip("=")
    + "$"
    + b64encode(os.urandom(32)).decode().rstrip("=")
)
_UNKNOWN_USER_DIGEST: Final = b64encode(os.urandom(SALT_SIZE + 32)).decode()


def hash_password(password: str, algorithm: str = DEFAULT_ALGORITHM, salt: bytes | None = None) -> str:
    """Hash a password, with a random salt unless one is given. :raises KeyError: for an unknown algorithm.

    argon2id takes about 30 ms and 19 MiB, so the kernel's thread may call this only at the start.
    """
    if algorithm == ARGON2ID:
        return _HASHER.hash(password, salt=salt)
    salt = os.urandom(SALT_SIZE) if salt is None else salt
    return b64encode(salt + _digest(salt, password, algorithm)).decode("ascii")


def verify_password(password: str, password_hash: str, algorithm: str) -> bool:
    """Whether the password matches the hash.

    An empty password or hash never matches, nor does an unknown algorithm. Digests are compared in constant time.
    """
    if algorithm not in ALGORITHMS or not password or not password_hash:
        return False
    if algorithm == ARGON2ID:
        return is_password_hash(password_hash, ARGON2ID) and _verify_argon2(password, password_hash)
    try:
        stored = b64decode(password_hash, validate=True)
        return hmac.compare_digest(_digest(stored[:SALT_SIZE], password, algorithm), stored[SALT_SIZE:])
    except ValueError:  # the hash is not base64, or the password cannot be UTF-8
        return False


def verify_unknown_user(password: str, *, with_digest: bool, with_argon2: bool) -> None:
    """Take the time of a verification with a digest, with argon2id, or with both in sequence."""
    if with_digest:
        verify_password(password, _UNKNOWN_USER_DIGEST, DEFAULT_ALGORITHM)
    if with_argon2:
        _verify_argon2(password, _UNKNOWN_USER_HASH)


def is_password_hash(password_hash: str, algorithm: str) -> bool:
    """Whether an imported hash has the form of its algorithm and an acceptable cost."""
    if algorithm == ARGON2ID:
        return _is_argon2(password_hash)
    try:
        size = len(b64decode(password_hash, validate=True))
    except ValueError:  # not base64, or not even ASCII
        return False
    return size == SALT_SIZE + DIGESTS[algorithm](b"").digest_size


def algorithm_of(password_hash: object) -> str:
    """Return the algorithm of a hash without an algorithm name: argon2id by its prefix, else the default."""
    is_argon2 = isinstance(password_hash, str) and password_hash.startswith("$argon2id$")
    return ARGON2ID if is_argon2 else DEFAULT_ALGORITHM


def _is_argon2(password_hash: str) -> bool:
    form = _ARGON2.fullmatch(password_hash) if len(password_hash) <= _LONGEST_ARGON2 else None
    if form is None:
        return False
    memory, passes, lanes = map(int, form.groups())
    return 8 * lanes <= memory <= _MOST_MEMORY and 1 <= passes <= _MOST_PASSES and 1 <= lanes <= _MOST_LANES


def _verify_argon2(password: str, password_hash: str) -> bool:
    try:
        return _HASHER.verify(password_hash, password)
    except (Argon2Error, InvalidHashError, ValueError):
        return False


def _digest(salt: bytes, password: str, algorithm: str) -> bytes:
    return DIGESTS[algorithm](salt + password.encode()).digest()
