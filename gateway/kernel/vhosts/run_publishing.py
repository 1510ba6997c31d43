"""Publishing of runs: messages in order, with one address and one header, as the rows of a batch have them."""

from typing import TYPE_CHECKING

from gateway.kernel.vhosts.virtual_host import VirtualHost

if TYPE_CHECKING:
    from gateway.kernel.messages.message import Message
    from gateway.kernel.messages.origin import Origin
    from gateway.kernel.routing.exchange import Route


class RunPublishing:
    """Publishes runs of one ``origin`` whose messages need nothing each: most do not.

    What they need is asked once for a run, in the turn that publishes it, so no answer is ever kept.
    """

    __slots__ = ("_origin", "_vhost")

    def __init__(self, vhost: VirtualHost, origin: "Origin") -> None:
        self._vhost = vhost
        self._origin = origin

    def publish(self, messages: "list[Message]") -> bool:
        """Publish all messages of a run; return ``False``, and do nothing, if each one is to be published by itself.

        The messages are new: none is in a queue. They are published if their route is known and leads to one queue, and
        neither an interceptor, a tracer, an archive, a consumer nor a feature of the queue has to see them.
        """
        route = self._known_route(messages[0])
        if route is None:
            return False
        sizes = [len(message.body) for message in messages]
        if not route.queues[0].offer_run(messages):
            return False
        route.count += len(messages)
        self._vhost.traffic.published_by(self._origin.protocol).count_all(sizes)
        return True

    def _known_route(self, message: "Message") -> "Route | None":
        """Return the route of a run, if it is one that needs to be found only once."""
        vhost = self._vhost
        exchange = vhost.exchange_by_name.get(message.exchange)
        if exchange is None or exchange.inert_reason or exchange.interceptor is not None:
            return None
        if message.header.sender_keys or vhost.tracing is not None:
            return None
        if vhost.interception.publishing_to(message.exchange, message.routing_key) is not None:
            return None
        route = exchange.routes.get(message.routing_key)
        return None if route is None or len(route.queues) != 1 or route.archives else route
