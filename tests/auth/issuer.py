"""An authorization server: it signs tokens for the resource server ``mq``, and publishes its keys over HTTP."""

import json
import time
from typing import Any, Final

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.auth.access_server import AccessServer, Form

#: The scopes of all permissions in all virtual hosts.
ALL: Final = "mq.read:*/* mq.write:*/* mq.configure:*/*"


class Issuer:
    """The server and its current key; ``rotate`` replaces the key."""

    def __init__(self) -> None:
        self.number = 0
        self.rotate()
        self.server = AccessServer(self._respond)

    def rotate(self) -> None:
        self.number += 1
        self.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)

    def token(self, user: str = "anna", scope: str = ALL, lasts_s: float = 600, **changes: Any) -> str:
        claims = {"sub": user, "aud": ["mq"], "exp": time.time() + lasts_s, "scope": scope, **changes}
        return jwt.encode(claims, self.key, "RS256", {"kid": f"key-{self.number}"})

    def key_set(self) -> bytes:
        """Return the key set with the current key."""
        fields = jwt.algorithms.RSAAlgorithm.to_jwk(self.key.public_key(), as_dict=True)
        return json.dumps({"keys": [{**fields, "kid": f"key-{self.number}", "use": "sig"}]}).encode()

    def _respond(self, path: str, form: Form) -> tuple[int, bytes]:
        return 200, self.key_set()
