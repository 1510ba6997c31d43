"""The settings of ``auth-oauth2``."""

from typing import Annotated, Final, Literal, Self, TypeAlias

from pydantic import Field, SecretStr, StringConstraints, model_validator

from gateway.api import PluginSettings

Algorithm: TypeAlias = Literal[
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "HS256", "HS384", "HS512"
]

#: The settings that say how keys are fetched, not whose tokens are accepted.
_FETCHING: Final = {"jwks_refresh_s", "jwks_min_interval_s", "timeout_s", "ca_file"}

#: The shortest secret of HS256, in bytes (RFC 7518, 3.2).
SHORTEST_SECRET: Final = 32


class OAuthSettings(PluginSettings):
    """The settings of OAuth 2; most have the names of RabbitMQ's ``auth_oauth2``."""

    resource_server_id: Annotated[str, StringConstraints(min_length=1)]
    """The name of this server in tokens: their audience, and the beginning of their scopes."""

    scope_prefix: str | None = None
    """The beginning of scopes for this server, by default ``resource_server_id`` and a dot; others are ignored."""

    verify_aud: bool = True
    """Whether the audience of a token must contain ``resource_server_id``."""

    issuer: str = ""
    """The required issuer of tokens; empty accepts any whose key is known."""

    additional_scopes_key: str = ""
    """Further claims with scopes, beside ``scope``: paths such as ``realm_access.roles``, separated by spaces."""

    resource_server_type: str = ""
    """The type of this server in rich authorization requests (``authorization_details``); empty ignores them."""

    scope_aliases: dict[str, list[str]] = {}
    """Scopes that stand for other scopes."""

    preferred_username_claims: list[str] = []
    """Claims with the user name, tried in order, before ``sub`` and ``client_id``."""

    algorithms: Annotated[list[Algorithm], Field(min_length=1)] = ["RS256", "ES256"]
    """The accepted signature algorithms."""

    jwks_url: Annotated[str, StringConstraints(pattern=r"^(https?://\S+)?$")] = ""
    """URL of the key set of the authorization server."""

    jwks_refresh_s: float = Field(default=3600.0, ge=10)
    """The key set is fetched again after this time."""

    jwks_min_interval_s: float = Field(default=10.0, ge=0.1)
    """For a key that is not known, the key set is fetched at once, but not more often than this."""

    signing_keys: dict[str, str] = {}
    """Public keys in PEM format by their identifiers (``kid``)."""

    hmac_keys: dict[str, Annotated[SecretStr, Field(min_length=SHORTEST_SECRET)]] = {}
    """Secrets of the HS algorithms by their identifiers."""

    default_key: str = ""
    """The identifier of the key of tokens without ``kid``; not needed if there is only one key."""

    leeway_s: float = Field(default=0.0, ge=0, le=600)
    """The accepted difference of clocks."""

    timeout_s: float = Field(default=5.0, gt=0, le=60)
    """A request for the key set fails after this time."""

    ca_file: str = ""
    """Certificates of the authorities that sign the server's, in PEM format; without it the system's."""

    @property
    def prefix(self) -> str:
        """The beginning of scopes for this server."""
        return f"{self.resource_server_id}." if self.scope_prefix is None else self.scope_prefix

    def accepts_as(self, other: "OAuthSettings") -> bool:
        """Whether other settings accept the same tokens for the same permissions."""
        return self.model_dump(exclude=_FETCHING) == other.model_dump(exclude=_FETCHING)

    @model_validator(mode="after")
    def _has_keys(self) -> Self:
        if not (self.jwks_url or self.signing_keys or self.hmac_keys):
            raise ValueError("one of jwks_url, signing_keys and hmac_keys is required")
        if both := set(self.signing_keys) & set(self.hmac_keys):
            raise ValueError(f"signing_keys and hmac_keys both have {', '.join(sorted(both))}")
        if self.default_key and not self.jwks_url and self.default_key not in {*self.signing_keys, *self.hmac_keys}:
            raise ValueError(f"default_key {self.default_key!r} is neither in signing_keys nor in hmac_keys")
        return self
