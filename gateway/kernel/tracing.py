"""What a tracer may do in the virtual host that it traces."""

from typing import TYPE_CHECKING

from gateway.kernel.message import Message, Properties
from gateway.kernel.names import LONGEST_NAME
from gateway.kernel.plain import plain_header

if TYPE_CHECKING:
    from gateway.kernel.vhost import VirtualHost


class TracedVhost:
    """A narrow door into one virtual host: its name, and publishing into it."""

    def __init__(self, vhost: "VirtualHost", node: str) -> None:
        self._vhost = vhost
        self.name = vhost.name
        self.node = node

    def publish(self, exchange: str, routing_key: str, properties: Properties, body: bytes) -> None:
        """Publish a message of the tracer's own; it is dropped where the exchange is gone, and never traced.

        A key longer than any protocol can carry is cut: with a long name of an exchange or queue in it, it may be.
        """
        target = self._vhost.exchange_by_name.get(exchange)
        routing_key = routing_key.encode()[:LONGEST_NAME].decode(errors="ignore")
        if target is not None:
            self._vhost.publish(target, Message(exchange, routing_key, plain_header(properties), body))
