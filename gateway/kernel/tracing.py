"""Who watches the messages of one virtual host, and what they may do there themselves."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from gateway.kernel.events import Event, Events
from gateway.kernel.message import Message, Properties
from gateway.kernel.names import LONGEST_NAME
from gateway.kernel.plain import plain_header

if TYPE_CHECKING:
    from gateway.kernel.ports import Origin, Tracer
    from gateway.kernel.queue import Queue
    from gateway.kernel.vhost import VirtualHost


class Tracing:
    """Tells the tracers of one virtual host what is published and handed out.

    One that breaks must not cost the message that it watches, so it becomes an event.
    """

    def __init__(self, vhost_name: str, tracers: "Sequence[Tracer]", events: Events) -> None:
        self._vhost_name = vhost_name
        self._tracers = tuple(tracers)
        self._events = events

    def published(self, message: Message, queues: "Sequence[Queue]", origin: "Origin") -> None:
        """Tell that a message was published, and which queues it goes to."""
        names = [queue.name for queue in queues]
        for tracer in self._tracers:
            self._spared(tracer, lambda tracer: tracer.published(message, names, origin))

    def delivered(self, message: Message, queue: "Queue", redelivered: bool, origin: "Origin") -> None:
        """Tell that a message was handed out."""
        for tracer in self._tracers:
            self._spared(tracer, lambda tracer: tracer.delivered(message, queue.name, redelivered, origin))

    def _spared(self, tracer: "Tracer", tell: "Callable[[Tracer], None]") -> None:
        try:
            tell(tracer)
        except Exception as error:  # the seam to a plugin: whatever it raises is its own fault
            details = {"tracer": type(tracer).__qualname__, "error": repr(error)}
            self._events.emit(Event("tracer.failed", self._vhost_name, details=details))


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
