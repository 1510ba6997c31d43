"""A cache of the answers of an authenticator."""

import hmac
import secrets
from collections.abc import Callable
from typing import Final

from gateway.api import Authenticator, Credentials, Principal
from gateway_auth.cache.answers import AnswerCounts, KeptAnswers
from gateway_auth.cache.settings import CacheSettings

#: The length of the random key of the digests, in bytes.
_KEY_SIZE: Final = 32


class CachedAuthenticator:
    """Repeats the answers of another authenticator.

    Credentials are kept as keyed digests, with a key of this process. ``now`` and ``unix_time`` are in seconds: a login
    that expires is not repeated after that.
    """

    def __init__(
        self,
        asked: Authenticator,
        settings: CacheSettings,
        now: Callable[[], float],
        unix_time: Callable[[], float],
    ) -> None:
        self._asked = asked
        self._settings = settings
        self._now = now
        self._unix_time = unix_time
        self._key = secrets.token_bytes(_KEY_SIZE)
        self.forget()

    def forget(self) -> None:
        """Drop all answers, also of logins in progress."""
        self._kept: KeptAnswers[bytes, Principal | None] = KeptAnswers(self._settings.max_entries, self._now)

    @property
    def counts(self) -> AnswerCounts:
        """The numbers of answers; those found and not found since the last ``forget``."""
        return self._kept.counts

    def authenticate(self, credentials: Credentials, answer: Callable[[Principal | None], None]) -> object:
        """Call ``answer``: at once for a kept answer, else when the other authenticator does."""
        kept, digest = self._kept, self._digest(credentials)
        if (found := kept.find(digest)) is not None:
            answer(found.answer)
            return None

        def answered(principal: Principal | None) -> None:
            if principal is None:
                kept.keep(digest, None, self._settings.refusal_ttl_s)
            elif isinstance(principal, Principal):
                kept.keep(digest, principal, self._ttl_s(principal))
            answer(principal)

        return self._asked.authenticate(credentials, answered)

    def _ttl_s(self, principal: Principal) -> float:
        expires_at_s = principal.expires_at_s
        longest_s = self._settings.ttl_s
        return min(longest_s, expires_at_s - self._unix_time()) if expires_at_s else longest_s

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
