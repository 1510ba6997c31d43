"""Login sessions: a user logs in once and sends a cookie from then on, as the web UI does.

The cookie is random and has no meaning of its own. A session ends after a fixed time, with the expiry of the user's
token, on logout, and when the user is deleted or gets another password or other tags.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from secrets import token_urlsafe
from typing import Final

from werkzeug.http import dump_cookie

from gateway.access import Principal
from gateway.kernel.broker.directory import Directory
from gateway.kernel.clock import Clock

#: The name of the cookie. With TLS a browser accepts the prefix only together with ``Secure`` and without ``Domain``,
#: so that neither a page without TLS nor another host can replace the cookie.
_NAME: Final = "gateway_session"
_SECURE_NAME: Final = f"__Host-{_NAME}"

#: Bytes of randomness in a cookie.
_TOKEN_SIZE: Final = 32

#: Maximum number of sessions, and of those of one user; the oldest ends first.
MAX_SESSIONS: Final = 10_000
MAX_SESSIONS_OF_USER: Final = 100


@dataclass(frozen=True, slots=True)
class LoginSession:
    """A session of ``principal``, until ``ends_at_s`` of the monotonic clock.

    ``credential`` identifies the user's password and tags at the login. A session that began on this machine
    (``is_local``) is not valid elsewhere.
    """

    principal: Principal
    ends_at_s: float
    credential: object
    is_local: bool


class LoginSessions:
    """Owns the sessions, by the hash of their cookie. ``lifetime_s`` is that of new sessions, in seconds."""

    def __init__(self, directory: Directory, clock: Clock, lifetime_s: float) -> None:
        self.lifetime_s = lifetime_s
        self._directory = directory
        self._clock = clock
        self._session_by_hash: dict[bytes, LoginSession] = {}

    def __len__(self) -> int:
        return len(self._session_by_hash)

    def begin(self, principal: Principal, *, is_local: bool) -> str:
        """Begin a session; return its cookie's value."""
        self._make_room(principal.name)
        token = token_urlsafe(_TOKEN_SIZE)
        ends_at_s = self._clock.monotonic_s() + self.lifetime_s
        credential = self._credential(principal.name)
        self._session_by_hash[_hash(token)] = LoginSession(principal, ends_at_s, credential, is_local)
        return token

    def principal_of(self, token: str, *, is_local: bool) -> Principal | None:
        """Return the user of a session; ``None`` if the session does not exist or has ended."""
        session = self._session_by_hash.get(_hash(token))
        if session is None or (session.is_local and not is_local):
            return None
        if self._has_ended(session):
            self.end(token)
            return None
        return session.principal

    def end(self, token: str) -> None:
        """End a session; do nothing if it does not exist."""
        self._session_by_hash.pop(_hash(token), None)

    def _has_ended(self, session: LoginSession) -> bool:
        principal = session.principal
        if self._clock.monotonic_s() >= session.ends_at_s:
            return True
        if principal.expires_at_s and self._clock.wall_ms() >= principal.expires_at_s * 1000:
            return True
        return self._credential(principal.name) != session.credential

    def _credential(self, user: str) -> object:
        """Return the password hash and the tags of a user; ``None`` for a user of another access plugin."""
        record = self._directory.user(user)
        return None if record is None else (record.password_hash, tuple(record.tags))

    def _make_room(self, user: str) -> None:
        sessions = self._session_by_hash
        if len(sessions) >= MAX_SESSIONS:
            del sessions[next(iter(sessions))]
        of_user = [key for key, session in sessions.items() if session.principal.name == user]
        for key in of_user[: max(0, len(of_user) + 1 - MAX_SESSIONS_OF_USER)]:
            del sessions[key]


def token_of(headers: Mapping[str, str], *, is_secure: bool) -> str | None:
    """Return the session cookie of a request; ``None`` without one. ``is_secure``: the request came over TLS."""
    name = _SECURE_NAME if is_secure else _NAME
    for pair in headers.get("cookie", "").split(";"):
        key, _, value = pair.strip().partition("=")
        if key == name:
            return value
    return None


def session_cookie(token: str, lifetime_s: float, *, is_secure: bool) -> dict[str, str]:
    """Return the header that sets the cookie; scripts cannot read it, and other sites' pages do not send it."""
    cookie = dump_cookie(
        _SECURE_NAME if is_secure else _NAME,
        token,
        max_age=int(lifetime_s),
        secure=is_secure,
        httponly=True,
        samesite="Strict",
    )
    return {"Set-Cookie": cookie}


def no_cookie(*, is_secure: bool) -> dict[str, str]:
    """Return the header that removes the cookie."""
    return session_cookie("", 0, is_secure=is_secure)


def _hash(token: str) -> bytes:
    return sha256(token.encode("utf-8", "surrogatepass")).digest()
