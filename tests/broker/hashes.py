"""Users with every password hash that RabbitMQ supports: base64 of a salt and the digest of salt and password."""

import base64
import hashlib
import json
from typing import Final

SALT: Final = b"\x90\x8d\xc6\x0a"

#: User to algorithm; the password of each user is the name followed by ``'s secret``.
USERS: Final = {"by-sha256": "sha256", "by-sha512": "sha512", "by-md5": "md5"}


def definitions() -> str:
    """Return definitions of these users, with all permissions in the default virtual host."""
    users = [
        {
            "name": user,
            "password_hash": _hashed(f"{user}'s secret", algorithm),
            "hashing_algorithm": f"rabbit_password_hashing_{algorithm}",
            "tags": "",
        }
        for user, algorithm in USERS.items()
    ]
    permissions = [{"user": user, "vhost": "/", "configure": ".*", "write": ".*", "read": ".*"} for user in USERS]
    return json.dumps({"users": users, "permissions": permissions})


def _hashed(password: str, algorithm: str) -> str:
    digest = hashlib.new(algorithm, SALT + password.encode(), usedforsecurity=False).digest()
    return base64.b64encode(SALT + digest).decode()
