"""fanout: to every binding, whatever the routing key."""

from gateway.api import Arguments, Binding, Destination, ExchangeTypes, Message, hookimpl


class Fanout:
    """Knows its bindings and asks nothing of the message."""

    routes_by_key = True

    def __init__(self, arguments: Arguments) -> None:
        self._destinations: dict[Binding, Destination] = {}

    def bind(self, binding: Binding) -> None:
        """Take a binding into the index."""
        self._destinations[binding] = binding.destination

    def unbind(self, binding: Binding) -> None:
        """Take a binding out of the index."""
        del self._destinations[binding]

    def route(self, message: Message) -> list[Destination]:
        """Return where the message goes."""
        return list(self._destinations.values())


@hookimpl
def gateway_exchange_types() -> ExchangeTypes:
    """Offer ``fanout``."""
    return {"fanout": Fanout}
