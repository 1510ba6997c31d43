"""The keys that verify tokens: those of the settings, and a key set that is fetched from the authorization server."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from gateway.api import ConfigurationError, StructuredLog
from gateway_auth.http_client import HttpClient
from gateway_auth.oauth.settings import OAuthSettings

_log: Final = StructuredLog("access")

#: The beginnings of the algorithms of each type of key. A public key must never be the secret of an HS algorithm.
_FAMILIES: Final[Mapping[type, tuple[str, ...]]] = {
    rsa.RSAPublicKey: ("RS", "PS"),
    ec.EllipticCurvePublicKey: ("ES",),
    ed25519.Ed25519PublicKey: ("EdDSA",),
    ed448.Ed448PublicKey: ("EdDSA",),
}


@dataclass(frozen=True, slots=True)
class VerificationKey:
    """A key, and the algorithms that it may be used with."""

    key: Any  # Any: PyJWT takes a type of its own for each algorithm
    algorithms: tuple[str, ...]


class KeySet:
    """Finds keys by their identifiers. ``client`` fetches ``jwks_url``; ``now`` is the time in seconds."""

    def __init__(self, settings: OAuthSettings, client: HttpClient, now: Callable[[], float]) -> None:
        """:raises ConfigurationError: if a key of the settings is invalid."""
        self._settings = settings
        self._client = client
        self._now = now
        self._static = dict(_static_keys(settings))
        self._fetched: dict[str, VerificationKey] = {}
        self._fetched_at: float | None = None
        self._asked_at: float | None = None
        self._waiting: list[Callable[[], None]] = []

    def close(self) -> None:
        """Close the connections to the authorization server."""
        self._client.close()

    def find(self, kid: str, answer: Callable[[VerificationKey | None], None]) -> None:
        """Call ``answer`` with the key: at once if it is known, else when the key set was fetched.

        An empty ``kid`` means the default key. Key sets are fetched for unknown keys, but not too often.
        """
        known = self._known(kid)
        if known is not None and not self._is_old:
            answer(known)
        elif known is not None:
            self._fetch(lambda: None)
            answer(known)
        else:
            self._fetch(lambda: answer(self._known(kid)))

    def _known(self, kid: str) -> VerificationKey | None:
        keys = {**self._fetched, **self._static}
        kid = kid or self._settings.default_key
        if not kid and len(keys) == 1:
            return next(iter(keys.values()))
        return keys.get(kid)

    @property
    def _is_old(self) -> bool:
        return self._fetched_at is not None and self._now() - self._fetched_at >= self._settings.jwks_refresh_s

    def _fetch(self, then: Callable[[], None]) -> None:
        """Fetch the key set, if that is due, and call ``then``; parallel requests share one."""
        settings = self._settings
        if self._waiting:
            self._waiting.append(then)
            return
        is_due = self._asked_at is None or self._now() - self._asked_at >= settings.jwks_min_interval_s
        if not settings.jwks_url or not is_due:
            then()
            return
        self._asked_at = self._now()
        self._waiting.append(then)
        self._client.request("GET", settings.jwks_url, b"", self._received)

    def _received(self, body: bytes | None) -> None:
        if body is not None:
            try:
                self._fetched = dict(_keys_of(json.loads(body), self._settings.algorithms))
                self._fetched_at = self._now()
            except (ValueError, AttributeError, TypeError, KeyError, RecursionError, jwt.PyJWTError) as error:
                _log.warning("invalid key set", server="auth-oauth2", reason=str(error)[:200])
        waiting, self._waiting = self._waiting, []
        for then in waiting:
            then()


def _static_keys(settings: OAuthSettings) -> Iterable[tuple[str, VerificationKey]]:
    for kid, secret in settings.hmac_keys.items():
        yield (
            kid,
            VerificationKey(
                secret.get_secret_value(), tuple(each for each in settings.algorithms if each.startswith("HS"))
            ),
        )
    for kid, pem in settings.signing_keys.items():
        try:
            key = load_pem_public_key(pem.encode())
        except Exception as error:  # cryptography raises several types
            raise ConfigurationError(f"signing_keys.{kid}: not a public key in PEM format: {error}") from None
        yield kid, VerificationKey(key, _algorithms_of(key, settings.algorithms))


def _keys_of(fields: Any, algorithms: Iterable[str]) -> Iterable[tuple[str, VerificationKey]]:
    """Yield the public keys for signatures in a key set (RFC 7517, 5); others are ignored."""
    for each in fields["keys"]:
        if each.get("use", "sig") != "sig" or each.get("kty") not in ("RSA", "EC", "OKP"):
            continue
        try:
            key = jwt.PyJWK.from_dict(each).key
        except jwt.PyJWTError as error:
            _log.warning("invalid key in a key set", server="auth-oauth2", reason=str(error)[:200])
            continue
        named = each.get("alg")
        allowed = [name for name in algorithms if named in (None, name)]
        yield str(each.get("kid", "")), VerificationKey(key, _algorithms_of(key, allowed))


def _algorithms_of(key: object, allowed: Iterable[str]) -> tuple[str, ...]:
    families = next((found for kind, found in _FAMILIES.items() if isinstance(key, kind)), ())
    return tuple(each for each in allowed if each.startswith(families))
