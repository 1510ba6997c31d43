"""The interface of a virtual host to its tracers, interceptors and event listeners."""

from collections.abc import Callable

from gateway.kernel.messages.bounds import LONGEST_NAME
from gateway.kernel.messages.message import Message, Properties
from gateway.kernel.messages.native_header import native_header


class VhostTracingScope:
    """The virtual host ``name`` on ``node``, for its tracers, interceptors and event listeners.

    ``publish`` takes the name of an exchange and a message, and drops the message when the exchange does not exist.
    ``provide_exchange`` creates an internal topic exchange, and ``is_bound`` tells whether one has bindings.
    """

    def __init__(
        self,
        name: str,
        node: str,
        publish: Callable[[str, Message], None],
        provide_exchange: Callable[[str], None],
        is_bound: Callable[[str], bool],
    ) -> None:
        self.name = name
        self.node = node
        self._publish = publish
        self.provide_exchange = provide_exchange
        self.is_bound = is_bound

    def publish(self, exchange: str, routing_key: str, properties: Properties, body: bytes) -> None:
        """Publish a message of a tracer, without tracing it; drop it when the exchange does not exist.

        The routing key is cut to the maximum length of a record, because it may contain a long queue or exchange name.
        """
        routing_key = routing_key.encode()[:LONGEST_NAME].decode(errors="ignore")
        self._publish(exchange, Message(exchange, routing_key, native_header(properties), body))
