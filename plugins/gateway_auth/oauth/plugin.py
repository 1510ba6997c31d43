"""auth-oauth2: logins with JSON Web Tokens, whose scopes are the permissions, as with RabbitMQ's OAuth 2 plugin.

A token is the password of a login, or the user name of a client of MQTT without a password, or the data of the
authentication method ``OAUTHBEARER`` (RFC 7628). The connection ends when the token expires, unless the client has
presented a new one: by ``connection.update-secret`` in AMQP, by AUTH in MQTT 5.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from gateway.api import (
    Answer,
    AuthenticationMethod,
    Authenticator,
    Authorizer,
    Challenge,
    Credentials,
    Failure,
    Permissions,
    PluginSettings,
    Principal,
    Success,
    Visitor,
    hookimpl,
)
from gateway_auth.oauth.scopes import ScopePermissions, TokenGrant
from gateway_auth.oauth.settings import OAuthSettings

if TYPE_CHECKING:
    from gateway_auth.oauth.tokens import TokenVerifier

METHOD: Final = "OAUTHBEARER"

_BEARER: Final = "auth=bearer "


class TokenAuthenticator:
    """Authenticates clients whose password is a token."""

    def __init__(self, verifier: "TokenVerifier") -> None:
        self._verifier = verifier
        self.close = verifier.close

    def authenticate(self, credentials: Credentials, answer: Callable[[Principal | None], None]) -> None:
        """Call ``answer``: at once if the key of the token is known, else when the key set was fetched."""
        match credentials.mechanism:
            case "PLAIN" | "AMQPLAIN" | "BEARER":
                self._verifier.verify(credentials.password, answer)
            case "USER-NAME":
                self._verifier.verify(credentials.username, answer)
            case _:
                answer(None)


class TokenAuthorizer:
    """Authorizes the principals of tokens that were verified with settings that accept the same tokens."""

    def __init__(self, settings: OAuthSettings) -> None:
        self._settings = settings

    def permissions(self, principal: Principal, vhost: str) -> Permissions | None:
        """Return the permissions of the token's scopes; ``None`` if none is for the virtual host."""
        grant = principal.grant
        if not isinstance(grant, TokenGrant) or not self._settings.accepts_as(grant.settings):
            return None
        scopes = grant.scopes.in_vhost(vhost)
        return ScopePermissions(principal.name, vhost, scopes) if scopes else None


class TokenMethod:
    """The authentication method ``OAUTHBEARER``."""

    def __init__(self, verifier: "TokenVerifier") -> None:
        self._verifier = verifier
        self.close = verifier.close

    def begin(self, visitor: Visitor) -> "TokenDialogue":
        """Start a dialogue; ``visitor`` is not used."""
        return TokenDialogue(self._verifier)


class TokenDialogue:
    """One client's dialogue: its message with the token, and the result."""

    def __init__(self, verifier: "TokenVerifier") -> None:
        self._verifier = verifier
        self._is_challenged = False

    def step(self, data: bytes, answer: Callable[[Answer], None]) -> None:
        """Handle the message of RFC 7628, 3.1, or the bare token; the first empty data is answered with a challenge."""
        if not data:
            answer(Failure("the client sent no token") if self._is_challenged else Challenge(b""))
            self._is_challenged = True
            return

        def verified(principal: Principal | None) -> None:
            answer(Failure("the token was refused") if principal is None else Success(principal))

        self._verifier.verify(_token_in(data), verified)


def _token_in(data: bytes) -> str:
    text = data.decode("utf-8", "replace")
    pairs = text.split("\x01")
    bearer = next((pair for pair in pairs if pair[: len(_BEARER)].lower() == _BEARER), None)
    return text if bearer is None else bearer[len(_BEARER) :].strip()


def _verifier(settings: OAuthSettings) -> "TokenVerifier":
    from twisted.internet import reactor  # the broker chooses the reactor before its plugins start

    from gateway_auth.http_client import HttpClient  # this, and PyJWT, are loaded only where they are used
    from gateway_auth.oauth.keys import KeySet
    from gateway_auth.oauth.tokens import TokenVerifier

    chosen: Any = reactor
    client = HttpClient(chosen, "auth-oauth2", timeout_s=settings.timeout_s, most_parallel=1, ca_file=settings.ca_file)
    return TokenVerifier(settings, KeySet(settings, client, chosen.seconds))


@hookimpl
def gateway_settings_model() -> type[PluginSettings]:
    """Describe the settings."""
    return OAuthSettings


@hookimpl
def gateway_authenticators(settings: OAuthSettings) -> Sequence[Authenticator]:
    """Offer the authenticator of tokens."""
    return [TokenAuthenticator(_verifier(settings))]


@hookimpl
def gateway_authentication_methods(settings: OAuthSettings) -> Mapping[str, AuthenticationMethod]:
    """Offer ``OAUTHBEARER``."""
    return {METHOD: TokenMethod(_verifier(settings))}


@hookimpl
def gateway_authorizers(settings: OAuthSettings) -> Sequence[Authorizer]:
    """Offer the authorizer of tokens."""
    return [TokenAuthorizer(settings)]
