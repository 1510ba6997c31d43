"""A cache of successful logins around any authenticator, so that reconnecting clients do not wait for its server."""

import hmac
import secrets
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from gateway.api import Authenticator, Credentials, Principal

#: The most logins remembered by one plugin in one virtual host.
MOST_REMEMBERED: Final = 10_000


class RememberingAuthenticator:
    """Repeats the answer of another authenticator for ``remember_s`` seconds; refusals are not remembered.

    Credentials are kept as keyed digests, with a key of this process. A password that was changed on the server is
    accepted until its login is forgotten.
    """

    def __init__(self, asked: Authenticator, remember_s: float, now: Callable[[], float]) -> None:
        self._asked = asked
        self._remember_s = remember_s
        self._now = now
        self._key = secrets.token_bytes(32)
        self._remembered: OrderedDict[bytes, tuple[float, Principal]] = OrderedDict()

    def close(self) -> None:
        """Close the other authenticator."""
        if callable(close := getattr(self._asked, "close", None)):
            close()

    def authenticate(self, credentials: Credentials, answer: Callable[[Principal | None], None]) -> None:
        """Call ``answer``: at once for a remembered login, else when the other authenticator does."""
        digest = self._digest(credentials)
        until, principal = self._remembered.get(digest, (0.0, None))
        if principal is not None and self._now() < until:
            answer(principal)
            return
        self._remembered.pop(digest, None)

        def answered(found: Principal | None) -> None:
            if found is not None:
                self._remembered[digest] = self._now() + self._remember_s, found
                if len(self._remembered) > MOST_REMEMBERED:
                    self._remembered.popitem(last=False)
            answer(found)

        self._asked.authenticate(credentials, answered)

    def _digest(self, credentials: Credentials) -> bytes:
        """Return the keyed digest of all that the other authenticator may look at; lengths separate the parts."""
        certificate = credentials.certificate
        subject = "" if certificate is None else f"{certificate.common_name}\0{certificate.distinguished_name}"
        parts = (
            credentials.mechanism,
            credentials.username,
            credentials.password,
            credentials.client_id,
            credentials.peer_host,
            subject,
        )
        encoded = [part.encode(errors="surrogatepass") for part in parts]
        return hmac.digest(self._key, b"".join(b"%d:%b" % (len(part), part) for part in encoded), "sha256")


def remembering(asked: Authenticator, remember_s: float, now: Callable[[], float]) -> Authenticator:
    """Return an authenticator that remembers logins, or the same one if ``remember_s`` is 0."""
    return RememberingAuthenticator(asked, remember_s, now) if remember_s > 0 else asked
