"""topic: routes to every binding whose key, a pattern of words, matches the routing key."""

from gateway.api import Arguments, Binding, Destination, ExchangeTypes, Message, TopicTrie, hookimpl


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

    def route(self, message: Message) -> list[Destination]:
        """Return the destinations of a message."""
        return self._destinations.match(message.routing_key)


@hookimpl
def gateway_exchange_types() -> ExchangeTypes:
    """Offer ``topic``."""
    return {"topic": Topic}
