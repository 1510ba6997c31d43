"""What a principal may do in a virtual host: patterns of resource names, and of routing keys for topic exchanges."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from gateway.kernel.errors import AccessRefused, PreconditionFailed
from gateway.kernel.patterns import Pattern
from gateway.patterns import compile_pattern

DEFAULT_EXCHANGE: Final = "amq.default"
"""The name by which patterns know the exchange whose name is empty."""

REMEMBERED_VERDICTS: Final = 1024
"""How many names one rule remembers; it then starts afresh, as names of server-named queues never come again."""

#: Patterns of topics that restrict nothing, as operators write them.
_EVERYTHING: Final = frozenset({".*", "^.*", ".*$", "^.*$"})

#: Characters in a routing key whose verdict is remembered.
LONGEST_REMEMBERED_KEY: Final = 255

_NO_VARIABLES: Final[Mapping[str, str]] = MappingProxyType({})


class Operation(IntEnum):
    """What somebody wants to do with a resource. The numbers index the rules of ``Permissions``."""

    CONFIGURE = 0
    WRITE = 1
    READ = 2


class CachedPattern:
    """One pattern and the names it was asked about lately."""

    __slots__ = ("_matches", "_verdict_by_name")

    def __init__(self, pattern: str) -> None:
        self._matches = compile_pattern(pattern).matches
        self._verdict_by_name: dict[str, bool] = {}

    def allows(self, name: str) -> bool:
        """Whether the pattern matches the name, anywhere in it unless it is anchored."""
        verdict = self._verdict_by_name.get(name)
        if verdict is None:
            if len(self._verdict_by_name) >= REMEMBERED_VERDICTS:
                self._verdict_by_name.clear()
            verdict = self._verdict_by_name[name] = self._matches(name)
        return verdict


@dataclass(frozen=True, slots=True)
class TopicPatterns:
    """Patterns of the routing keys that may be used with one topic exchange; they may hold ``{variables}``."""

    write: str
    read: str

    def pattern(self, operation: Operation) -> str:
        """Return the pattern for an operation; there is none for configuring, which topics never restrict."""
        return self.write if operation is Operation.WRITE else self.read


class Permissions:
    """A snapshot of what one principal may do in one virtual host.

    Patterns match resource names anywhere unless anchored, and the empty pattern matches nothing. Compiled once;
    answers are remembered, so asking again costs two look-ups.
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
        """Compile the patterns. :raises PreconditionFailed: when one is not a regular expression."""
        self.user = user
        self.vhost = vhost
        self._rules = (CachedPattern(configure), CachedPattern(write), CachedPattern(read))
        self._topics = topics

    def may(self, operation: Operation, name: str) -> bool:
        """Whether the operation is allowed on the resource of this name; an empty one is the default exchange."""
        return self._rules[operation].allows(name or DEFAULT_EXCHANGE)

    def require(self, operation: Operation, kind: str, name: str) -> None:
        """Insist on a permission; ``kind`` is ``exchange`` or ``queue``. :raises AccessRefused: if it is missing."""
        if not self.may(operation, name):
            resource = f"{kind} '{name or DEFAULT_EXCHANGE}' in vhost '{self.vhost}'"
            raise AccessRefused(f"access to {resource} refused for user '{self.user}'")

    @property
    def restricts_topics(self) -> bool:
        """Whether there is anything for ``require_topic`` to check, which there hardly ever is."""
        return bool(self._topics)

    def may_use_topic(
        self, operation: Operation, exchange: str, routing_key: str, variables: Mapping[str, str] = _NO_VARIABLES
    ) -> bool:
        """Whether a routing key may be used with a topic exchange.

        ``{username}`` and ``{vhost}`` in the pattern are known; ``variables`` adds what the connection knows, such as
        ``client_id``.
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
        """Insist that a routing key may be used with a topic exchange. :raises AccessRefused: if it may not."""
        if not self.may_use_topic(operation, exchange, routing_key, variables):
            resource = f"topic '{routing_key}' in exchange '{exchange}' in vhost '{self.vhost}'"
            raise AccessRefused(f"access to {resource} refused for user '{self.user}'")

    def require_every_topic(self, operation: Operation, exchange: str) -> None:
        """Insist that every routing key may be used with a topic exchange. :raises AccessRefused: if some may not.

        Whoever lets an exchange pass messages on to another one does not know their keys yet.
        """
        patterns = self._topics.get(exchange)
        if patterns is not None and patterns.pattern(operation) not in _EVERYTHING:
            resource = f"every topic in exchange '{exchange}' in vhost '{self.vhost}'"
            raise AccessRefused(f"access to {resource} refused for user '{self.user}'")


@lru_cache(maxsize=8192)
def _topic_verdict(pattern: str, variables: tuple[tuple[str, str], ...], routing_key: str) -> bool:
    """Tell whether a pattern, its variables filled in, matches a routing key."""
    try:
        return _topic_pattern(pattern, variables).matches(routing_key)
    except PreconditionFailed:  # filled in, it is longer than patterns may be
        return False


@lru_cache(maxsize=4096)
def _topic_pattern(pattern: str, variables: tuple[tuple[str, str], ...]) -> Pattern:
    """Fill in the variables and compile.

    RabbitMQ fills in the bare text; a client identifier of ``.*`` then widens the pattern. Ours stand for themselves.
    """
    for name, value in variables:
        pattern = pattern.replace(f"{{{name}}}", re.escape(value))
    return compile_pattern(pattern)
