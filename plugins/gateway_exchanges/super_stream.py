"""x-super-stream: to one of the partitions of a super stream, chosen by a hash of the routing key.

Clients of RabbitMQ's streams choose the partition themselves, by this very hash. Here the exchange does it, so any
publisher of any protocol reaches the partition that such a client would.
"""

from bisect import insort
from typing import Final

from gateway.api import Arguments, Binding, Destination, ExchangeTypes, Message, hookimpl
from gateway_exchanges.murmur import murmur3

ORDER: Final = "x-stream-partition-order"
"""The argument of a binding that says which partition, from 0, it leads to."""

#: RabbitMQ's stream clients begin their hash with this.
_SEED: Final = 104_729

#: Behind every number that a binding can say.
_LAST: Final = 2**63


class SuperStream:
    """The same routing key always reaches the same partition, for as long as there are as many partitions."""

    routes_by_key = True

    def __init__(self, arguments: Arguments) -> None:
        self._partitions: list[Binding] = []

    def bind(self, binding: Binding) -> None:
        """Take a partition in, in its place: the order of binding may differ after a restart."""
        insort(self._partitions, binding, key=_place)

    def unbind(self, binding: Binding) -> None:
        """Take a partition out."""
        self._partitions.remove(binding)

    def route(self, message: Message) -> list[Destination]:
        """Return the partition of the message's routing key."""
        if not self._partitions:
            return []
        number = murmur3(message.routing_key.encode(), _SEED) % len(self._partitions)
        return [self._partitions[number].destination]


def _place(binding: Binding) -> tuple[int, str, str, str]:
    """Order by what the binding says of it; those that say nothing come last, by name."""
    said = binding.arguments.get(ORDER)
    order = said if isinstance(said, int) and not isinstance(said, bool) else _LAST
    destination = binding.destination
    return order, type(destination).__name__, destination.name, binding.routing_key


@hookimpl
def gateway_exchange_types() -> ExchangeTypes:
    """Offer ``x-super-stream``."""
    return {"x-super-stream": SuperStream}
