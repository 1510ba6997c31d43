"""The interface of exchange interceptors, which handle messages before the exchange routes them."""

from typing import TYPE_CHECKING, Protocol

from gateway.kernel.messages.message import Message
from gateway.kernel.queueing.queue import Queue

if TYPE_CHECKING:
    from gateway.kernel.routing.binding import Binding


class ExchangeInterceptor(Protocol):
    """Inspects each message that is published to one exchange.

    ``waiting`` is the unnamed queue of delayed messages, ``None`` if nothing is delayed.
    """

    waiting: Queue | None

    def takes(self, message: Message) -> Queue | None:
        """Return the queue that gets a message instead of its routes; ``None`` to route it as usual."""
        ...

    def would_take(self, message: Message) -> Queue | None:
        """Return the answer of ``takes`` without its effects, for an explanation."""
        ...

    def bound(self, binding: "Binding") -> None:
        """Called when a client has created a binding of the exchange."""
        ...

    def close(self) -> None:
        """Delete delayed and kept messages and the deduplication cache: the exchange is deleted."""
        ...
