"""x-super-stream: routes to one partition of a super stream, chosen by a hash of the routing key.

RabbitMQ's stream clients choose the partition themselves, with the same hash. Here the exchange chooses it, so
publishers of any protocol reach the same partition as such a client.
"""

from bisect import insort
from typing import Final

from gateway.api import Arguments, Binding, Destination, ExchangeTypes, Message, hookimpl
from gateway_exchanges.murmur import murmur3

ORDER: Final = "x-stream-partition-order"
"""The binding argument with the partition's number, from 0."""

#: The seed of the hash in RabbitMQ's stream clients.
_SEED: Final = 104_729

#: Sorts after every number that a binding can have.
_LAST: Final = 2**63


class SuperStream:
    """To one partition of a super stream: a key has the same one while the number of partitions does not change."""

    routes_by_key = True

    def __init__(self, arguments: Arguments) -> None:
        self._partitions: list[Binding] = []

    def bind(self, binding: Binding) -> None:
        """Add a partition, sorted by number: the order of binding may differ after a restart."""
        insort(self._partitions, binding, key=_place)

    def unbind(self, binding: Binding) -> None:
        """Remove a partition."""
        self._partitions.remove(binding)

    def route(self, message: Message) -> list[Destination]:
        """Return the partition of the message's routing key."""
        if not self._partitions:
            return []
        number = murmur3(message.routing_key.encode(), _SEED) % len(self._partitions)
        return [self._partitions[number].destination]


def _place(binding: Binding) -> tuple[int, str, str, str]:
    """Return the sort key of a partition: its number, or its name for those without one, which come last."""
    value = binding.arguments.get(ORDER)
    order = value if isinstance(value, int) and not isinstance(value, bool) else _LAST
    destination = binding.destination
    return order, type(destination).__name__, destination.name, binding.routing_key


@hookimpl
def gateway_exchange_types() -> ExchangeTypes:
    """Offer ``x-super-stream``."""
    return {"x-super-stream": SuperStream}
