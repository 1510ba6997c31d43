"""The interface of a virtual host to its tracers: its name, and publishing."""

from collections.abc import Callable

from gateway.kernel.messages.bounds import LONGEST_NAME
from gateway.kernel.messages.message import Message, Properties
from gateway.kernel.messages.native_header import native_header


class VhostTracingScope:
    """The virtual host ``name`` on ``node``, for its tracers.

    ``publish`` takes the name of an exchange and a message, and drops the message when the exchange does not exist.
    """

    def __init__(self, name: str, node: str, publish: Callable[[str, Message], None]) -> None:
        self.name = name
        self.node = node
        self._publish = publish

    def publish(self, exchange: str, routing_key: str, properties: Properties, body: bytes) -> None:
        """Publish a message of a tracer, without tracing it; drop it when the exchange does not exist.

        The routing key is cut to the maximum length of a record, because it may contain a long queue or exchange name.
        """
        routing_key = routing_key.encode()[:LONGEST_NAME].decode(errors="ignore")
        self._publish(exchange, Message(exchange, routing_key, native_header(properties), body))
