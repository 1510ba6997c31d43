"""The interface of tracers, which plugins implement to observe the messages of one virtual host."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Protocol

from gateway.kernel.messages.message import Message
from gateway.kernel.messages.origin import Origin

if TYPE_CHECKING:
    from gateway.kernel.queueing.queue_identity import QueueIdentity

#: Tracers get the names of this many queues of a message: a list of 100,000 takes 30 ms to make and to write.
MOST_NAMES: Final = 1000


class Tracer(Protocol):
    """Observes every message of a virtual host; created per virtual host, called only while tracing is on."""

    def published(self, message: Message, queues: Sequence[str], origin: Origin) -> None:
        """Observe a message that was routed to these queues.

        There are at most 1,001 entries. If the message has more queues, the last one is not a name but counts the
        others: ``... and 99000 more``.
        """
        ...

    def delivered(self, message: Message, queue: str, redelivered: bool, origin: Origin) -> None:
        """Observe a message that was delivered to a consumer."""
        ...


def names_of(queues: "Sequence[QueueIdentity]") -> list[str]:
    """Return the names of the queues of a message, as ``Tracer.published`` gets them."""
    if len(queues) <= MOST_NAMES:
        return [queue.name for queue in queues]
    return [*[queue.name for queue in queues[:MOST_NAMES]], f"... and {len(queues) - MOST_NAMES} more"]
