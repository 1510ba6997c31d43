"""x-local-random: to one of the bound queues, drawn anew for each message."""

import random
from collections.abc import Callable, Sequence

from gateway.api import Arguments, Binding, Destination, Exchange, ExchangeTypes, Message, PreconditionFailed, hookimpl


class LocalRandom:
    """Draws a queue. A queue can be bound but once, since the binding key must be empty; arguments do not help it."""

    def __init__(
        self, arguments: Arguments, choose: Callable[[Sequence[Destination]], Destination] = random.choice
    ) -> None:
        self._bindings_by_queue: dict[Destination, set[Binding]] = {}
        self._queues: tuple[Destination, ...] = ()
        self._choose = choose

    def bind(self, binding: Binding) -> None:
        """Take a binding in. :raises PreconditionFailed: when it has a key or does not lead to a queue."""
        if binding.routing_key:
            raise PreconditionFailed(f"Non empty binding '{binding.routing_key}' key not permitted")
        if isinstance(binding.destination, Exchange):
            raise PreconditionFailed("Destination not found")
        self._bindings_by_queue.setdefault(binding.destination, set()).add(binding)
        self._queues = tuple(self._bindings_by_queue)

    def unbind(self, binding: Binding) -> None:
        """Take a binding out."""
        bindings = self._bindings_by_queue[binding.destination]
        bindings.remove(binding)
        if not bindings:
            del self._bindings_by_queue[binding.destination]
        self._queues = tuple(self._bindings_by_queue)

    def route(self, message: Message) -> list[Destination]:
        """Return where the message goes."""
        return [self._choose(self._queues)] if self._queues else []


@hookimpl
def gateway_exchange_types() -> ExchangeTypes:
    """Offer ``x-local-random``."""
    return {"x-local-random": LocalRandom}
