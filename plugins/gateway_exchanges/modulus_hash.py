"""x-modulus-hash: distributes messages over the bound queues by a hash of the routing key.

RabbitMQ uses Erlang's ``phash2``; the guarantee holds with any hash: while the bindings do not change, a routing key
maps to the same queue, also after a restart.
"""

from bisect import insort
from zlib import crc32

from gateway.api import Arguments, Binding, Destination, ExchangeTypes, Message, hookimpl


class ModulusHash:
    """To one binding, chosen by a hash of the routing key. A destination with n bindings gets n shares."""

    routes_by_key = True

    def __init__(self, arguments: Arguments) -> None:
        self._bindings: list[Binding] = []

    def bind(self, binding: Binding) -> None:
        """Add a binding, sorted by name: the order of binding may differ after a restart."""
        insort(self._bindings, binding, key=_place)

    def unbind(self, binding: Binding) -> None:
        """Remove a binding."""
        self._bindings.remove(binding)

    def route(self, message: Message) -> list[Destination]:
        """Return the destination of a message."""
        if not self._bindings:
            return []
        slot = crc32(message.routing_key.encode()) % len(self._bindings)
        return [self._bindings[slot].destination]


def _place(binding: Binding) -> tuple[str, str]:
    return type(binding.destination).__name__, binding.destination.name


@hookimpl
def gateway_exchange_types() -> ExchangeTypes:
    """Offer ``x-modulus-hash``."""
    return {"x-modulus-hash": ModulusHash}
