"""The part of a virtual host that tracers may use: its name, and publishing into it."""

from collections.abc import Callable

from gateway.kernel.messages.bounds import LONGEST_NAME
from gateway.kernel.messages.message import Message, Properties
from gateway.kernel.messages.native_header import plain_header


class VhostTracingScope:
    """The virtual host ``name`` on ``node`` as its tracers see it.

    ``publish`` takes the name of an exchange and a message, and drops the message when there is no such exchange.
    """

    def __init__(self, name: str, node: str, publish: Callable[[str, Message], None]) -> None:
        self.name = name
        self.node = node
        self._publish = publish

    def publish(self, exchange: str, routing_key: str, properties: Properties, body: bytes) -> None:
        """Publish a message of the tracer; it is dropped when the exchange does not exist, and it is not traced.

        A routing key is cut to the length that a record can hold: it may contain a long name of an exchange or queue.
        """
        routing_key = routing_key.encode()[:LONGEST_NAME].decode(errors="ignore")
        self._publish(exchange, Message(exchange, routing_key, plain_header(properties), body))
