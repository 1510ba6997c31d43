"""What the operator of a node decided for the queues of all its virtual hosts."""

from dataclasses import dataclass
from typing import Final

from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.queueing.queue import RESIDENT_MESSAGES
from gateway.kernel.streams.stream_log import SEGMENT_SIZE

QUEUE_TYPES: Final = ("classic", "quorum", "stream")


@dataclass(frozen=True, slots=True)
class QueueRules:
    """Rules that queues are declared and built by.

    ``resident_messages`` is how many messages of a queue stay in memory in any case, ``reserve`` how many bytes all
    queues share for others. ``default_type`` is what a queue becomes that is declared without a type in a virtual host
    that has no default of its own. ``segment_size`` is when the segment of a stream is complete that is not told
    another size, in bytes. The limits are those of each virtual host, and of exclusive queues for each connection; 0 is
    none.
    """

    resident_messages: int = RESIDENT_MESSAGES
    permits_transient: bool = True
    default_type: str = "classic"
    segment_size: int = SEGMENT_SIZE
    reserve: int = 0
    max_queues: int = 0
    max_exclusive_queues: int = 0
    max_bindings: int = 0
    max_consumers: int = 0
    max_consumers_per_channel: int = 0


def require_known_type(name: str) -> None:
    """Refuse a default type that no queue can have; empty is none. :raises PreconditionFailed: naming it."""
    if name and name not in QUEUE_TYPES:
        raise PreconditionFailed(f"unsupported default queue type '{name}'")
