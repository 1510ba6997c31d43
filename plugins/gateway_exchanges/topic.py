"""topic: routes to every binding whose key, a pattern of words, matches the routing key."""

from collections.abc import Iterable
from functools import partial
from typing import Final

from gateway.api import (
    Arguments,
    Binding,
    Destination,
    ExchangeTypes,
    LongRoute,
    Message,
    TooManyMatches,
    TopicTrie,
    hookimpl,
)

#: Patterns that are followed at once; a match of more takes several turns.
_MOST_AT_ONCE: Final = 2048


class Topic:
    """Matches words separated by dots: ``*`` matches exactly one word, ``#`` any number of words."""

    routes_by_key = True

    def __init__(self, arguments: Arguments) -> None:
        self._destinations: TopicTrie[Binding, Destination] = TopicTrie()

    def bind(self, binding: Binding) -> None:
        """Add a binding."""
        self._destinations.insert(binding.routing_key, binding, binding.destination)

    def unbind(self, binding: Binding) -> None:
        """Remove a binding."""
        self._destinations.remove(binding.routing_key, binding)

    def route(self, message: Message) -> Iterable[Destination]:
        """Return the destinations of a message."""
        try:
            return self._destinations.match(message.routing_key, most=_MOST_AT_ONCE)
        except TooManyMatches:
            return LongRoute(partial(self._destinations.matching, message.routing_key))


@hookimpl
def gateway_exchange_types() -> ExchangeTypes:
    """Offer ``topic``."""
    return {"topic": Topic}
