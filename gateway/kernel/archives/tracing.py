"""Who watches the messages of one virtual host, and what they may do there themselves."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from gateway.kernel.faults import Faults
from gateway.kernel.messages.message import Message

if TYPE_CHECKING:
    from gateway.kernel.archives.trace_table import TraceTable
    from gateway.kernel.archives.tracer import Tracer
    from gateway.kernel.messages.origin import Origin
    from gateway.kernel.queueing.queue import Queue


class VhostTracing:
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
        except BaseException as error:  # the seam to a plugin: whatever it raises is its own fault
            self._faults.contain_in_part("tracer", error, self._vhost_name, tracer)
