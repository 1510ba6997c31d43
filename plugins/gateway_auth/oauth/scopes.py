"""Scopes of tokens as permissions, in RabbitMQ's format: ``read:VHOST/NAME/ROUTING-KEY`` and ``tag:TAG``."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final
from urllib.parse import unquote

from gateway.api import Operation, Permissions
from gateway_auth.oauth.settings import OAuthSettings

DEFAULT_EXCHANGE: Final = "amq.default"

_OPERATIONS: Final = {"configure": Operation.CONFIGURE, "write": Operation.WRITE, "read": Operation.READ}


def matches(pattern: str, text: str) -> bool:
    """Whether a text matches a pattern whose only wildcard is ``*``, in time linear in the text for each ``*``."""
    first, *rest = pattern.split("*")
    if not rest:
        return pattern == text
    *middle, last = rest
    if not text.startswith(first) or not text.endswith(last) or len(text) < len(first) + len(last):
        return False
    at, end = len(first), len(text) - len(last)
    for piece in middle:
        found = text.find(piece, at, end)
        if found < 0:
            return False
        at = found + len(piece)
    return True


@dataclass(frozen=True, slots=True)
class Scope:
    """One permission of a token; the patterns are decoded."""

    operation: Operation
    vhost: str
    name: str
    routing_key: str

    @classmethod
    def parse(cls, text: str) -> "Scope | None":
        """Parse a scope without its prefix; ``None`` if it is not a permission."""
        operation, _, rest = text.partition(":")
        parts = [unquote(part) for part in rest.split("/")]
        if operation not in _OPERATIONS or len(parts) not in (2, 3):
            return None
        return cls(_OPERATIONS[operation], parts[0], parts[1], parts[2] if len(parts) == 3 else "*")


@dataclass(frozen=True, slots=True)
class Scopes:
    """All permissions and tags of a token."""

    permissions: tuple[Scope, ...]
    tags: frozenset[str]

    @classmethod
    def parse(cls, texts: Iterable[str], prefix: str) -> "Scopes":
        """Parse scopes; those without the prefix, and unknown ones, are ignored."""
        own = [text.removeprefix(prefix) for text in texts if text.startswith(prefix)]
        permissions = tuple(scope for text in own if (scope := Scope.parse(text)) is not None)
        return cls(permissions, frozenset(text.removeprefix("tag:") for text in own if text.startswith("tag:")))

    def in_vhost(self, vhost: str) -> tuple[Scope, ...]:
        """Return the permissions that apply to a virtual host."""
        return tuple(scope for scope in self.permissions if matches(scope.vhost, vhost))


@dataclass(frozen=True, slots=True)
class TokenGrant:
    """The scopes of a verified token. ``settings`` are those that it was verified with."""

    scopes: Scopes
    settings: OAuthSettings


class ScopePermissions(Permissions):
    """The permissions of one token in one virtual host."""

    __slots__ = ("_scopes",)

    def __init__(self, user: str, vhost: str, scopes: tuple[Scope, ...]) -> None:
        super().__init__(user, vhost, "", "", "")
        self._scopes = scopes

    def may(self, operation: Operation, name: str, kind: str = "exchange") -> bool:
        """Whether a scope allows the operation on a resource; ``kind`` does not matter."""
        named = name or DEFAULT_EXCHANGE
        return any(scope.operation is operation and matches(scope.name, named) for scope in self._scopes)

    @property
    def restricts_topics(self) -> bool:
        """Whether a scope has a pattern for routing keys other than ``*``."""
        return any(scope.routing_key != "*" for scope in self._scopes)

    def may_use_topic(
        self,
        operation: Operation,
        exchange: str,
        routing_key: str,
        variables: Mapping[str, str] = MappingProxyType({}),
    ) -> bool:
        """Whether a scope allows a routing key of the exchange; scopes have no variables."""
        return any(
            scope.operation is operation and matches(scope.name, exchange) and matches(scope.routing_key, routing_key)
            for scope in self._scopes
        )

    def may_use_every_topic(self, operation: Operation, exchange: str) -> bool:
        """Whether a scope allows all routing keys of the exchange."""
        return any(
            scope.operation is operation and matches(scope.name, exchange) and scope.routing_key == "*"
            for scope in self._scopes
        )
