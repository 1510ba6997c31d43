"""x-random: routes each message to the destination of one randomly chosen binding."""

import random
from collections.abc import Callable, Sequence

from gateway.api import Arguments, Binding, Destination, ExchangeTypes, Message, hookimpl


class RandomBinding:
    """To the destination of one binding, chosen at random. One with n bindings gets n shares; keys are ignored."""

    def __init__(
        self, arguments: Arguments, choose: Callable[[Sequence[Destination]], Destination] = random.choice
    ) -> None:
        self._destination_by_binding: dict[Binding, Destination] = {}
        self._destinations: tuple[Destination, ...] | None = ()  # None: to be listed before the next choice
        self._choose = choose

    def bind(self, binding: Binding) -> None:
        """Add a binding."""
        self._destination_by_binding[binding] = binding.destination
        self._destinations = None

    def unbind(self, binding: Binding) -> None:
        """Remove a binding."""
        del self._destination_by_binding[binding]
        self._destinations = None

    def route(self, message: Message) -> list[Destination]:
        """Return the destination of a message."""
        if self._destinations is None:
            self._destinations = tuple(self._destination_by_binding.values())
        return [self._choose(self._destinations)] if self._destinations else []


@hookimpl
def gateway_exchange_types() -> ExchangeTypes:
    """Offer ``x-random``."""
    return {"x-random": RandomBinding}
