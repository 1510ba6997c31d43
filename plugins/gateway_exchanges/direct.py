"""direct: routes to every binding whose key equals the routing key."""

from gateway.api import Arguments, Binding, Destination, ExchangeTypes, Message, hookimpl


class Direct:
    """Routes by a dictionary of binding keys."""

    routes_by_key = True

    def __init__(self, arguments: Arguments) -> None:
        self._destinations_by_key: dict[str, dict[Binding, Destination]] = {}

    def bind(self, binding: Binding) -> None:
        """Add a binding."""
        self._destinations_by_key.setdefault(binding.routing_key, {})[binding] = binding.destination

    def unbind(self, binding: Binding) -> None:
        """Remove a binding, and its key with the last one."""
        destinations = self._destinations_by_key[binding.routing_key]
        del destinations[binding]
        if not destinations:
            del self._destinations_by_key[binding.routing_key]

    def route(self, message: Message) -> tuple[Destination, ...]:
        """Return the destinations of a message."""
        return tuple(self._destinations_by_key.get(message.routing_key, {}).values())


@hookimpl
def gateway_exchange_types() -> ExchangeTypes:
    """Offer ``direct``."""
    return {"direct": Direct}
