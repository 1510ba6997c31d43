"""direct: to every binding whose key is the routing key, byte for byte."""

from gateway.api import Arguments, Binding, Destination, ExchangeTypes, Message, hookimpl


class Direct:
    """Looks the routing key up."""

    routes_by_key = True

    def __init__(self, arguments: Arguments) -> None:
        self._destinations_by_key: dict[str, dict[Binding, Destination]] = {}

    def bind(self, binding: Binding) -> None:
        """Take a binding into the index."""
        self._destinations_by_key.setdefault(binding.routing_key, {})[binding] = binding.destination

    def unbind(self, binding: Binding) -> None:
        """Take a binding out of the index, and the key with its last binding."""
        destinations = self._destinations_by_key[binding.routing_key]
        del destinations[binding]
        if not destinations:
            del self._destinations_by_key[binding.routing_key]

    def route(self, message: Message) -> list[Destination]:
        """Return where the message goes."""
        return list(self._destinations_by_key.get(message.routing_key, {}).values())


@hookimpl
def gateway_exchange_types() -> ExchangeTypes:
    """Offer ``direct``."""
    return {"direct": Direct}
