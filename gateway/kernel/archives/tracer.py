"""The interface of tracers, which plugins implement to observe the messages of one virtual host."""

from collections.abc import Sequence
from typing import Protocol

from gateway.kernel.messages.message import Message
from gateway.kernel.messages.origin import Origin


class Tracer(Protocol):
    """Observes every message of a virtual host; created per virtual host, called only while tracing is on."""

    def published(self, message: Message, queues: Sequence[str], origin: Origin) -> None:
        """Observe a message that was routed to these queues."""
        ...

    def delivered(self, message: Message, queue: str, redelivered: bool, origin: Origin) -> None:
        """Observe a message that was delivered to a consumer."""
        ...
