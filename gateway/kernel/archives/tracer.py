"""The interface of tracers, which plugins implement: they are told of the messages of one virtual host."""

from collections.abc import Sequence
from typing import Protocol

from gateway.kernel.messages.message import Message
from gateway.kernel.messages.origin import Origin


class Tracer(Protocol):
    """Sees every message of a virtual host pass. Asked for per virtual host; called only where one is set."""

    def published(self, message: Message, queues: Sequence[str], origin: Origin) -> None:
        """A message was routed to these queues."""
        ...

    def delivered(self, message: Message, queue: str, redelivered: bool, origin: Origin) -> None:
        """A message was handed to a consumer."""
        ...
