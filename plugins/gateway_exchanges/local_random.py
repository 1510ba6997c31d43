"""x-local-random: routes each message to one randomly chosen bound queue."""

import random
from collections.abc import Callable, Sequence

from gateway.api import Arguments, Binding, Destination, Exchange, ExchangeTypes, Message, PreconditionFailed, hookimpl


class LocalRandom:
    """To one bound queue, chosen at random. Several bindings of one queue count as one."""

    def __init__(
        self, arguments: Arguments, choose: Callable[[Sequence[Destination]], Destination] = random.choice
    ) -> None:
        self._bindings_by_queue: dict[Destination, set[Binding]] = {}
        self._queues: tuple[Destination, ...] = ()
        self._choose = choose

    def bind(self, binding: Binding) -> None:
        """Add a binding. :raises PreconditionFailed: if it has a key or its destination is an exchange."""
        if binding.routing_key:
            raise PreconditionFailed(f"Non empty binding '{binding.routing_key}' key not permitted")
        if isinstance(binding.destination, Exchange):
            raise PreconditionFailed("Destination not found")
        self._bindings_by_queue.setdefault(binding.destination, set()).add(binding)
        self._queues = tuple(self._bindings_by_queue)

    def unbind(self, binding: Binding) -> None:
        """Remove a binding."""
        bindings = self._bindings_by_queue[binding.destination]
        bindings.remove(binding)
        if not bindings:
            del self._bindings_by_queue[binding.destination]
        self._queues = tuple(self._bindings_by_queue)

    def route(self, message: Message) -> list[Destination]:
        """Return the destination of a message."""
        return [self._choose(self._queues)] if self._queues else []


@hookimpl
def gateway_exchange_types() -> ExchangeTypes:
    """Offer ``x-local-random``."""
    return {"x-local-random": LocalRandom}
