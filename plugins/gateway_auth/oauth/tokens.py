"""Verification of JSON Web Tokens (RFC 7519), and the principal of each."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import jwt

from gateway.api import Principal, StructuredLog
from gateway_auth.oauth.claims import scopes_of
from gateway_auth.oauth.keys import KeySet, VerificationKey
from gateway_auth.oauth.scopes import Scopes, TokenGrant
from gateway_auth.oauth.settings import OAuthSettings

_log: Final = StructuredLog("access")

#: The longest token, in characters.
LONGEST_TOKEN: Final = 64 * 1024

_USER_CLAIMS: Final = ("sub", "client_id")


class TokenVerifier:
    """Turns tokens into principals."""

    def __init__(self, settings: OAuthSettings, keys: KeySet) -> None:
        self._settings = settings
        self._keys = keys

    def close(self) -> None:
        """Close the connections to the authorization server."""
        self._keys.close()

    def verify(self, token: str, answer: Callable[[Principal | None], None]) -> None:
        """Call ``answer`` with the principal, or with ``None`` after the reason was logged.

        It is called at once if the key is known. Text that is no token is not logged: it is a password for others.
        """
        if len(token) > LONGEST_TOKEN or token.count(".") != 2:
            answer(None)
            return
        try:
            head = jwt.get_unverified_header(token)
        except jwt.PyJWTError:
            answer(None)
            return
        kid = head.get("kid", "")
        self._keys.find(kid, lambda key: answer(self._principal(token, str(kid), key)))

    def _principal(self, token: str, kid: str, key: VerificationKey | None) -> Principal | None:
        if key is None:
            _log_refusal(f"no key {kid[:80]!r}")
            return None
        settings = self._settings
        try:
            claims = jwt.decode(
                token,
                key.key,
                algorithms=list(key.algorithms),
                audience=settings.resource_server_id if settings.verify_aud else None,
                issuer=settings.issuer or None,
                leeway=settings.leeway_s,
                options={"verify_aud": settings.verify_aud},
            )
        except (jwt.PyJWTError, TypeError, ValueError, OverflowError) as error:
            _log_refusal(str(error))
            return None
        return self._principal_of(claims)

    def _principal_of(self, claims: Mapping[str, Any]) -> Principal | None:
        settings = self._settings
        names = (claims.get(claim) for claim in (*settings.preferred_username_claims, *_USER_CLAIMS))
        user = next((name for name in names if isinstance(name, str) and name), None)
        if user is None:
            _log_refusal("it has no user name")
            return None
        scopes = Scopes.parse(scopes_of(claims, settings), settings.prefix, claims)
        expires_at = claims.get("exp")
        try:
            expires_at_s = float(expires_at) + settings.leeway_s if expires_at is not None else 0.0
        except (TypeError, ValueError, OverflowError):
            _log_refusal("its time of expiry is not a number")
            return None
        return Principal(user, scopes.tags, grant=TokenGrant(scopes, settings), expires_at_s=expires_at_s)


def _log_refusal(reason: str) -> None:
    _log.warning("token refused", reason=reason[:200])
