"""The default exchange, to which every queue and every direct reply-to consumer is bound by its name (R18)."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from gateway.kernel.errors import AccessRefused
from gateway.kernel.messages.message import Message
from gateway.kernel.routing.exchange import Exchange

if TYPE_CHECKING:
    from gateway.kernel.queueing.queue_like import QueueLike
    from gateway.kernel.routing.binding import Binding, Destination


class DefaultExchangeType:
    """Routes to the queue whose name is the routing key. It has no explicit bindings."""

    def __init__(
        self, queue_by_name: "Mapping[str, QueueLike]", reply_queue_by_name: "Mapping[str, QueueLike]"
    ) -> None:
        self._queue_by_name = queue_by_name
        self._reply_queue_by_name = reply_queue_by_name

    def bind(self, binding: "Binding") -> None:
        """Refuse every binding."""
        raise AccessRefused("operation not permitted on the default exchange")

    def unbind(self, binding: "Binding") -> None:
        """Refuse every unbinding."""
        raise AccessRefused("operation not permitted on the default exchange")

    def route(self, message: Message) -> "Iterable[Destination]":
        """Return the queue of that name, or the direct reply-to consumer that waits for replies under it."""
        key = message.routing_key
        queue = self._queue_by_name.get(key)
        if queue is None:
            queue = self._reply_queue_by_name.get(key)
        return () if queue is None else (queue,)


def default_exchange(
    vhost_name: str, queue_by_name: "Mapping[str, QueueLike]", reply_queue_by_name: "Mapping[str, QueueLike]"
) -> Exchange:
    """Return the default exchange of a virtual host."""
    type = DefaultExchangeType(queue_by_name, reply_queue_by_name)
    return Exchange(vhost_name, "", "direct", type, is_durable=True, routes_by_key=True)
