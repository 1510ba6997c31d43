"""The interface of a virtual host to its tracers, interceptors and event listeners."""

from collections.abc import Callable

from gateway.kernel.messages.bounds import LONGEST_NAME
from gateway.kernel.messages.message import Message, Properties
from gateway.kernel.messages.native_header import native_header


class VhostTracingScope:
    """The virtual host ``name`` on ``node``, for its tracers, interceptors and event listeners.

    ``publish`` takes the name of an exchange and a message, and drops the message when the exchange does not exist.
    ``offer`` takes the name of a queue and a message. ``provide_exchange`` creates an internal topic exchange, and
    ``is_bound`` tells whether one has bindings. ``close_connections`` takes a user and a reason.
    """

    def __init__(
        self,
        name: str,
        node: str,
        publish: Callable[[str, Message], None],
        provide_exchange: Callable[[str], None],
        is_bound: Callable[[str], bool],
        offer: Callable[[str, Message], bool],
        close_connections: Callable[[str, str], None],
    ) -> None:
        self.name = name
        self.node = node
        self._publish = publish
        self.provide_exchange = provide_exchange
        self.is_bound = is_bound
        self._offer = offer
        self.close_connections = close_connections

    def publish(self, exchange: str, routing_key: str, properties: Properties, body: bytes) -> None:
        """Publish a message of a tracer, without tracing it; drop it when the exchange does not exist."""
        self._publish(exchange, _message(exchange, routing_key, properties, body))

    def publish_to_queue(
        self, queue: str, exchange: str, routing_key: str, properties: Properties, body: bytes
    ) -> bool:
        """Publish a message to one queue, with the address that its consumers see; return whether it took it."""
        return self._offer(queue, _message(exchange, routing_key, properties, body))


def _message(exchange: str, routing_key: str, properties: Properties, body: bytes) -> Message:
    """Return a message of a plugin. The routing key is cut to the limit of records: it may contain a long name."""
    routing_key = routing_key.encode()[:LONGEST_NAME].decode(errors="ignore")
    return Message(exchange, routing_key, native_header(properties), body)
