"""topic: to every binding whose key, read as a pattern of words, matches the routing key."""

from gateway.api import Arguments, Binding, Destination, ExchangeTypes, Message, TopicTrie, hookimpl


class Topic:
    """Matches words between dots: ``*`` stands for exactly one, ``#`` for any number of them."""

    routes_by_key = True

    def __init__(self, arguments: Arguments) -> None:
        self._destinations: TopicTrie[Binding, Destination] = TopicTrie()

    def bind(self, binding: Binding) -> None:
        """Take a binding into the index."""
        self._destinations.insert(binding.routing_key, binding, binding.destination)

    def unbind(self, binding: Binding) -> None:
        """Take a binding out of the index."""
        self._destinations.remove(binding.routing_key, binding)

    def route(self, message: Message) -> list[Destination]:
        """Return where the message goes."""
        return self._destinations.match(message.routing_key)


@hookimpl
def gateway_exchange_types() -> ExchangeTypes:
    """Offer ``topic``."""
    return {"topic": Topic}
