"""Credentials for the management API."""

from base64 import b64encode
from dataclasses import dataclass
from typing import Final

#: Shown as the user of a token in errors.
TOKEN_USER: Final = "(token)"


@dataclass(frozen=True, slots=True)
class ApiCredentials:
    """A user's name for errors, and the header that logs in."""

    user: str
    authorization: str

    @classmethod
    def of_password(cls, user: str, password: str) -> "ApiCredentials":
        """Return the credentials of a user with a password."""
        encoded = b64encode(f"{user}:{password}".encode(errors="surrogateescape")).decode()
        return cls(user, f"Basic {encoded}")

    @classmethod
    def of_token(cls, token: str) -> "ApiCredentials":
        """Return the credentials of a token, for brokers with ``auth-oauth2``."""
        return cls(TOKEN_USER, f"Bearer {token}")
