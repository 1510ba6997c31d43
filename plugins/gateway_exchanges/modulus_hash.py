"""x-modulus-hash: spread messages over the bound queues by routing key.

RabbitMQ hashes with Erlang's ``phash2``; the promise is the same with any hash: while the bindings stay as they are, a
routing key reaches the same queue, after a restart too.
"""

from bisect import insort
from zlib import crc32

from gateway.api import Arguments, Binding, Destination, ExchangeTypes, Message, hookimpl


class ModulusHash:
    """The same routing key always reaches the same one destination. A destination bound n times gets n shares."""

    routes_by_key = True

    def __init__(self, arguments: Arguments) -> None:
        self._bindings: list[Binding] = []

    def bind(self, binding: Binding) -> None:
        """Take a binding in, in its place by name: the order of binding may differ after a restart."""
        insort(self._bindings, binding, key=_place)

    def unbind(self, binding: Binding) -> None:
        """Take a binding out."""
        self._bindings.remove(binding)

    def route(self, message: Message) -> list[Destination]:
        """Return where the message goes."""
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
