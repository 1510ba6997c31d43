"""The interface of exchange interceptors: they take messages before the exchange routes them."""

from typing import Protocol

from gateway.kernel.messages.message import Message
from gateway.kernel.queueing.queue import Queue


class ExchangeInterceptor(Protocol):
    """Inspects each message that is published to one exchange.

    ``waiting`` is the unnamed queue that holds delayed messages, ``None`` where nothing is delayed.
    """

    waiting: Queue | None

    def takes(self, message: Message) -> Queue | None:
        """Return the queue that gets a message in place of its routes; ``None`` to route it as usual."""
        ...

    def close(self) -> None:
        """Drop what is held back and forget what was seen: the exchange is deleted."""
        ...
