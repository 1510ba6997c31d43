"""An operator, an account and a user of NATS, with the tokens that a server and a client need."""

import base64
import binascii
import hashlib
import json
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

#: The first bytes of the public keys of a user, an account and an operator.
USER, ACCOUNT, OPERATOR = 20 << 3, 0, 14 << 3


def seed_of(key: Ed25519PrivateKey, kind: int = USER) -> str:
    """Return a private key as NATS writes it."""
    return _written(bytes((18 << 3 | kind >> 5, (kind & 31) << 3)) + key.private_bytes_raw())


def public_of(key: Ed25519PrivateKey, kind: int) -> str:
    """Return a public key as NATS writes it."""
    return _written(bytes((kind,)) + key.public_key().public_bytes_raw())


def _written(raw: bytes) -> str:
    return base64.b32encode(raw + binascii.crc_hqx(raw, 0).to_bytes(2, "little")).decode().rstrip("=")


class Identities:
    """The operator signs the account and that of the system, the account signs the user."""

    def __init__(self) -> None:
        operator, account, user, system = (Ed25519PrivateKey.generate() for _ in range(4))
        system_name = public_of(system, ACCOUNT)
        names = public_of(operator, OPERATOR), public_of(account, ACCOUNT), public_of(user, USER)
        operator_token = token(operator, names[0], names[0], {"type": "operator", "version": 2})
        unlimited = {"subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "conn": -1, "leaf": -1}
        account_token = token(operator, names[0], names[1], {"type": "account", "version": 2, "limits": unlimited})
        system_token = token(operator, names[0], system_name, {"type": "account", "version": 2, "limits": unlimited})
        limits = {"subs": -1, "data": -1, "payload": -1}
        user_token = token(account, names[1], names[2], {"type": "user", "version": 2, **limits})
        #: The settings of a server that knows the account.
        self.settings = (
            f"operator: {operator_token}\nsystem_account: {system_name}\nresolver: MEMORY\n"
            f"resolver_preload: {{ {names[1]}: {account_token}, {system_name}: {system_token} }}"
        )
        #: The credentials file of the user.
        self.credentials = (
            f"-----BEGIN NATS USER JWT-----\n{user_token}\n------END NATS USER JWT------\n\n"
            "************************* IMPORTANT *************************\nkeep it secret\n\n"
            f"-----BEGIN USER NKEY SEED-----\n{seed_of(user)}\n------END USER NKEY SEED------\n"
        )


def token(key: Ed25519PrivateKey, issuer: str, subject: str, nats: dict[str, Any]) -> str:
    """Return a signed token of NATS."""
    claims = {"iat": 1_700_000_000, "iss": issuer, "sub": subject, "name": "test", "nats": nats}
    digest = hashlib.new("sha512_256", json.dumps(claims).encode()).digest()
    claims["jti"] = base64.b32encode(digest).decode().rstrip("=")
    parts = [{"typ": "JWT", "alg": "ed25519-nkey"}, claims]
    signed = ".".join(_encoded(json.dumps(part).encode()) for part in parts)
    return f"{signed}.{_encoded(key.sign(signed.encode()))}"


def _encoded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")
