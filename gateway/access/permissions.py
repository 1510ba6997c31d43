"""Permissions of a principal in a virtual host: patterns of resource names and of topic routing keys."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from gateway.kernel.caches import remember
from gateway.kernel.errors import AccessRefused, PreconditionFailed
from gateway.kernel.patterns import Pattern
from gateway.patterns import compile_pattern

DEFAULT_EXCHANGE: Final = "amq.default"
"""The name of the default exchange in patterns."""

REMEMBERED_VERDICTS: Final = 1024
"""The cache size of one pattern. The cache is cleared when full, because server-generated names never repeat."""

#: Topic patterns without restriction, in the usual spellings.
_EVERYTHING: Final = frozenset({".*", "^.*", ".*$", "^.*$"})

#: The longest routing key whose result is cached, in characters.
LONGEST_REMEMBERED_KEY: Final = 255

_NO_VARIABLES: Final[Mapping[str, str]] = MappingProxyType({})


class Operation(IntEnum):
    """An operation on a resource. The numbers index the patterns of ``Permissions``."""

    CONFIGURE = 0
    WRITE = 1
    READ = 2


class CachedPattern:
    """A pattern with a cache of recent results."""

    __slots__ = ("_matches", "_verdict_by_name")

    def __init__(self, pattern: str) -> None:
        self._matches = compile_pattern(pattern).matches
        self._verdict_by_name: dict[str, bool] = {}

    def allows(self, name: str) -> bool:
        """Whether the pattern matches the name, anywhere in it unless it is anchored."""
        verdict = self._verdict_by_name.get(name)
        if verdict is None:
            verdict = remember(self._verdict_by_name, name, self._matches(name), REMEMBERED_VERDICTS)
        return verdict


@dataclass(frozen=True, slots=True)
class TopicPatterns:
    """Patterns of allowed routing keys in one topic exchange; they may contain ``{variables}``."""

    write: str
    read: str

    def pattern(self, operation: Operation) -> str:
        """Return the pattern for write or read; configure is not restricted by topic."""
        return self.write if operation is Operation.WRITE else self.read


class Permissions:
    """A snapshot of one principal's permissions in one virtual host.

    A pattern matches anywhere in a name unless anchored; the empty pattern matches nothing. Patterns are compiled once
    and results are cached. A plugin may derive from this class to decide in another way; it then overrides ``may``,
    ``restricts_topics``, ``may_use_topic`` and ``may_use_every_topic``.
    """

    __slots__ = ("_rules", "_topics", "user", "vhost")

    def __init__(
        self,
        user: str,
        vhost: str,
        configure: str,
        write: str,
        read: str,
        topics: Mapping[str, TopicPatterns] = MappingProxyType({}),
    ) -> None:
        """Compile the patterns. :raises PreconditionFailed: if one is not a valid regular expression."""
        self.user = user
        self.vhost = vhost
        self._rules = (CachedPattern(configure), CachedPattern(write), CachedPattern(read))
        self._topics = topics

    @property
    def asks_elsewhere(self) -> bool:
        """Whether the methods may raise ``PermissionUnknown``."""
        return False

    def may(self, operation: Operation, name: str, kind: str = "exchange") -> bool:
        """Whether the operation is allowed on a resource; the empty name is the default exchange.

        ``kind`` is ``exchange`` or ``queue``. Patterns ignore it.
        """
        return self._rules[operation].allows(name or DEFAULT_EXCHANGE)

    def require(self, operation: Operation, kind: str, name: str) -> None:
        """Require a permission; ``kind`` is ``exchange`` or ``queue``. :raises AccessRefused: if it is missing."""
        if not self.may(operation, name, kind):
            resource = f"{kind} '{name or DEFAULT_EXCHANGE}' in vhost '{self.vhost}'"
            raise AccessRefused(f"access to {resource} refused for user '{self.user}'")

    @property
    def restricts_topics(self) -> bool:
        """Whether any topic permission exists; usually there is none."""
        return bool(self._topics)

    def may_use_topic(
        self, operation: Operation, exchange: str, routing_key: str, variables: Mapping[str, str] = _NO_VARIABLES
    ) -> bool:
        """Whether a routing key may be used with a topic exchange.

        ``{username}`` and ``{vhost}`` are replaced in the pattern; ``variables`` adds others, such as ``client_id``.
        """
        patterns = self._topics.get(exchange)
        if patterns is None:
            return True
        known = {"username": self.user, "vhost": self.vhost, **variables}
        verdict = _topic_verdict if len(routing_key) <= LONGEST_REMEMBERED_KEY else _topic_verdict.__wrapped__
        return verdict(patterns.pattern(operation), tuple(known.items()), routing_key)

    def require_topic(
        self, operation: Operation, exchange: str, routing_key: str, variables: Mapping[str, str] = _NO_VARIABLES
    ) -> None:
        """Require that a routing key may be used with a topic exchange. :raises AccessRefused: if it may not."""
        if not self.may_use_topic(operation, exchange, routing_key, variables):
            resource = f"topic '{routing_key}' in exchange '{exchange}' in vhost '{self.vhost}'"
            raise AccessRefused(f"access to {resource} refused for user '{self.user}'")

    def may_use_every_topic(self, operation: Operation, exchange: str) -> bool:
        """Whether all routing keys may be used with a topic exchange."""
        patterns = self._topics.get(exchange)
        return patterns is None or patterns.pattern(operation) in _EVERYTHING

    def require_every_topic(self, operation: Operation, exchange: str) -> None:
        """Require that all routing keys may be used with a topic exchange. :raises AccessRefused: if some may not.

        For republishing by an exchange or queue, whose routing keys are not known in advance.
        """
        if not self.may_use_every_topic(operation, exchange):
            resource = f"every topic in exchange '{exchange}' in vhost '{self.vhost}'"
            raise AccessRefused(f"access to {resource} refused for user '{self.user}'")


@lru_cache(maxsize=8192)
def _topic_verdict(pattern: str, variables: tuple[tuple[str, str], ...], routing_key: str) -> bool:
    """Whether a pattern with replaced variables matches a routing key."""
    try:
        return _topic_pattern(pattern, variables).matches(routing_key)
    except PreconditionFailed:  # with variables replaced it exceeds the maximum length
        return False


@lru_cache(maxsize=4096)
def _topic_pattern(pattern: str, variables: tuple[tuple[str, str], ...]) -> Pattern:
    """Replace the variables and compile the pattern.

    RabbitMQ inserts the values unescaped, so a client identifier ``.*`` widens the pattern. Here they are escaped.
    """
    for name, value in variables:
        pattern = pattern.replace(f"{{{name}}}", re.escape(value))
    return compile_pattern(pattern)
