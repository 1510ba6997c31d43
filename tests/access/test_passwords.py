"""Password hashes are equal to RabbitMQ's."""

import pytest

from gateway.access.passwords import DIGESTS, hash_password, is_password_hash, verify_password

SALT = bytes.fromhex("908DC60A")

# The first is the worked example of RabbitMQ's documentation (docs/passwords, "Computing Password Hash").
KNOWN = [
    ("rabbit_password_hashing_sha256", "test12", "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR"),
]


@pytest.mark.parametrize(("algorithm", "password", "password_hash"), KNOWN)
def test_a_hash_equals_rabbitmq_s(algorithm: str, password: str, password_hash: str) -> None:
    assert hash_password(password, algorithm, SALT) == password_hash
    assert verify_password(password, password_hash, algorithm)


@pytest.mark.parametrize("algorithm", DIGESTS)
def test_only_the_right_password_is_verified(algorithm: str) -> None:
    password_hash = hash_password("pässword", algorithm)
    assert is_password_hash(password_hash, algorithm)
    assert verify_password("pässword", password_hash, algorithm)
    assert not verify_password("pässwort", password_hash, algorithm)


def test_hashes_of_the_same_password_differ() -> None:
    assert hash_password("a") != hash_password("a")


REFUSED = [
    pytest.param("", hash_password(""), "rabbit_password_hashing_sha256", id="a blank password"),
    pytest.param("a", "", "rabbit_password_hashing_sha256", id="a user without a password"),
    pytest.param("a", hash_password("a"), "rabbit_password_hashing_sha512", id="a hash of another algorithm"),
    pytest.param("a", hash_password("a"), "rabbit_password_hashing_none", id="an unknown algorithm"),
    pytest.param("a", "not base64!", "rabbit_password_hashing_sha256", id="not base64"),
    pytest.param("a", "AAAA", "rabbit_password_hashing_sha256", id="a short hash"),
]


@pytest.mark.parametrize(("password", "password_hash", "algorithm"), REFUSED)
def test_passwords_and_hashes_that_are_never_verified(password: str, password_hash: str, algorithm: str) -> None:
    assert not verify_password(password, password_hash, algorithm)
