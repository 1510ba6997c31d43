"""x-lvc, a last value cache: a direct exchange that hands a new destination the last message of its binding key."""

from collections.abc import Iterable

from gateway.api import Arguments, Binding, ExchangeTypes, KeptMessages, Message, hookimpl
from gateway_exchanges.direct import Direct


class LastValue(Direct):
    """Like ``direct``; a new destination gets the last message of its key."""

    routes_by_key = False

    def __init__(self, arguments: Arguments) -> None:
        super().__init__(arguments)
        self._kept = KeptMessages()

    def attach(self, kept: KeptMessages) -> None:
        """Set where to keep messages."""
        self._kept = kept

    def published(self, message: Message) -> None:
        """Keep a message as the last one of its routing key, and of the keys in ``CC`` and ``BCC``."""
        for key in (message.routing_key, *message.header.sender_keys):
            self._kept.put(key, message)

    def bound(self, binding: Binding) -> Iterable[Message]:
        """Return the last message of the binding key, if there is one."""
        message = self._kept.get(binding.routing_key)
        return () if message is None else (message.with_routing_key(binding.routing_key),)


@hookimpl
def gateway_exchange_types() -> ExchangeTypes:
    """Offer ``x-lvc``."""
    return {"x-lvc": LastValue}
