"""Scopes of tokens as permissions, in RabbitMQ's format: ``read:VHOST/NAME/ROUTING-KEY`` and ``tag:TAG``."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, TypeAlias
from urllib.parse import unquote

from gateway.api import Operation, Permissions
from gateway_auth.oauth.settings import OAuthSettings

DEFAULT_EXCHANGE: Final = "amq.default"

#: The pattern ``*``.
ANY: Final = ("", "")

_VARIABLE: Final = re.compile(r"\{([^{}]*)\}")

_OPERATIONS: Final = {"configure": Operation.CONFIGURE, "write": Operation.WRITE, "read": Operation.READ}


Pattern: TypeAlias = tuple[str, ...]
"""The decoded pieces of a pattern between its wildcards ``*``."""


def pattern_of(text: str) -> Pattern:
    """Parse a pattern: ``*`` matches any text, ``%2A`` is an asterisk."""
    return tuple([unquote(piece) for piece in text.split("*")])


def matches(pattern: Pattern, text: str) -> bool:
    """Whether a text matches a pattern, in time linear in the text for each wildcard."""
    first, *rest = pattern
    if not rest:
        return first == text
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


def _expanded(pattern: Pattern, variables: Mapping[str, str]) -> Pattern:
    """Return a pattern with the values of its variables, such as ``{sub}``. They match themselves only.

    :raises KeyError: if there is no such variable.
    """
    return tuple([_VARIABLE.sub(lambda found: variables[found[1]], piece) for piece in pattern])


@dataclass(frozen=True, slots=True)
class Scope:
    """One permission of a token, whose patterns may contain variables."""

    operation: Operation
    vhost: Pattern
    name: Pattern
    routing_key: Pattern

    @classmethod
    def parse(cls, text: str) -> "Scope | None":
        """Parse a scope without its prefix; ``None`` if it is not a permission."""
        operation, _, rest = text.partition(":")
        parts = [pattern_of(part) for part in rest.split("/")]
        if operation not in _OPERATIONS or len(parts) not in (2, 3):
            return None
        return cls(_OPERATIONS[operation], parts[0], parts[1], parts[2] if len(parts) == 3 else ANY)

    def expanded(self, variables: Mapping[str, str]) -> "Scope | None":
        """Return the scope with the values of its variables; ``None`` if one of them has no value."""
        try:
            vhost, name, key = (_expanded(each, variables) for each in (self.vhost, self.name, self.routing_key))
        except KeyError:
            return None
        return Scope(self.operation, vhost, name, key)


@dataclass(frozen=True, slots=True)
class Scopes:
    """All permissions and tags of a token. ``variables`` are its claims that are text."""

    permissions: tuple[Scope, ...]
    tags: frozenset[str]
    variables: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, texts: Iterable[str], prefix: str, claims: Mapping[str, object] = MappingProxyType({})) -> "Scopes":
        """Parse scopes; those without the prefix, and unknown ones, are ignored."""
        own = [text.removeprefix(prefix) for text in texts if text.startswith(prefix)]
        permissions = tuple(scope for text in own if (scope := Scope.parse(text)) is not None)
        variables = {name: value for name, value in claims.items() if isinstance(value, str)}
        tags = frozenset(text.removeprefix("tag:") for text in own if text.startswith("tag:"))
        return cls(permissions, tags, variables)

    def in_vhost(self, vhost: str) -> tuple[Scope, ...]:
        """Return the permissions that apply to a virtual host, with the values of their variables."""
        variables = {**self.variables, "vhost": vhost}
        found = (scope.expanded(variables) for scope in self.permissions)
        return tuple(scope for scope in found if scope is not None and matches(scope.vhost, vhost))


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
        return any(scope.routing_key != ANY for scope in self._scopes)

    def may_use_topic(
        self,
        operation: Operation,
        exchange: str,
        routing_key: str,
        variables: Mapping[str, str] = MappingProxyType({}),
    ) -> bool:
        """Whether a scope allows a routing key of the exchange; only claims are variables of scopes."""
        return any(
            scope.operation is operation and matches(scope.name, exchange) and matches(scope.routing_key, routing_key)
            for scope in self._scopes
        )

    def may_use_every_topic(self, operation: Operation, exchange: str) -> bool:
        """Whether a scope allows all routing keys of the exchange."""
        return any(
            scope.operation is operation and matches(scope.name, exchange) and scope.routing_key == ANY
            for scope in self._scopes
        )
