"""fanout: routes to every binding and ignores the routing key."""

from gateway.api import Arguments, Binding, Destination, ExchangeTypes, Message, hookimpl


class Fanout:
    """Routes every message to all bindings."""

    routes_by_key = True

    def __init__(self, arguments: Arguments) -> None:
        self._destinations: dict[Binding, Destination] = {}

    def bind(self, binding: Binding) -> None:
        """Add a binding."""
        self._destinations[binding] = binding.destination

    def unbind(self, binding: Binding) -> None:
        """Remove a binding."""
        del self._destinations[binding]

    def route(self, message: Message) -> tuple[Destination, ...]:
        """Return the destinations of a message."""
        return tuple(self._destinations.values())


@hookimpl
def gateway_exchange_types() -> ExchangeTypes:
    """Offer ``fanout``."""
    return {"fanout": Fanout}
