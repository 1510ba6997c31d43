"""Who watches the messages of one virtual host, and what they may do there themselves."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from gateway.kernel.bounds import LONGEST_NAME
from gateway.kernel.faults import Faults
from gateway.kernel.message import Message, Properties
from gateway.kernel.plain import plain_header

if TYPE_CHECKING:
    from gateway.kernel.ports import Origin, Tracer
    from gateway.kernel.queue import Queue
    from gateway.kernel.trace_table import TraceTable
    from gateway.kernel.vhost import VirtualHost


class Tracing:
    """Tells the tracers of one virtual host, and its table of events, what is published and handed out.

    A tracer that fails does not cost the message that it watches: ``faults`` contain what it raises. The table writes
    down what it is told while it is on; tracers are told while ``tells_tracers``.
    """

    def __init__(self, vhost_name: str, tracers: "Sequence[Tracer]", table: "TraceTable", faults: Faults) -> None:
        self.tells_tracers = True
        self._vhost_name = vhost_name
        self._tracers = tuple(tracers)
        self._table = table
        self._faults = faults

    @property
    def is_needed(self) -> bool:
        """Whether anybody wants to know."""
        return self.tells_tracers or self._table.is_on

    def published(self, message: Message, queues: "Sequence[Queue]", origin: "Origin | None") -> Message:
        """Tell that a message was published, and which queues it goes to; return it as they are to get it.

        What has no ``origin``, as the copies that tracers publish, is not for tracers.
        """
        if self.tells_tracers and origin is not None:
            names = [queue.name for queue in queues]
            for tracer in self._tracers:
                self._spared(tracer, lambda tracer: tracer.published(message, names, origin))
        return self._table.published(message, queues, origin) if self._table.is_on else message

    def delivered(
        self, message: Message, queue: "Queue", redelivered: bool, origin: "Origin", position: int | None = None
    ) -> None:
        """Tell that a message was handed out; ``position`` is its place in the queue, ``None`` for none."""
        if self.tells_tracers:
            for tracer in self._tracers:
                self._spared(tracer, lambda tracer: tracer.delivered(message, queue.name, redelivered, origin))
        if self._table.is_on:
            self._table.delivered(message, queue, redelivered, origin, position)

    def _spared(self, tracer: "Tracer", tell: "Callable[[Tracer], None]") -> None:
        try:
            tell(tracer)
        except Exception as error:  # the seam to a plugin: whatever it raises is its own fault
            self._faults.contain_in_part("tracer", error, self._vhost_name, tracer)


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
