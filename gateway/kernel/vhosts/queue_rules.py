"""Node-wide settings for queues."""

from dataclasses import dataclass
from typing import Final

from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.queueing.queue import RESIDENT_MESSAGES
from gateway.kernel.streams.stream_log import SEGMENT_SIZE

QUEUE_TYPES: Final = ("classic", "quorum", "stream")


@dataclass(frozen=True, slots=True)
class QueueRules:
    """Settings for declaring and building queues.

    ``resident_messages`` is the number of messages of a queue that always stay in memory, ``reserve`` the bytes that
    all queues share for more. ``default_type`` is the queue type where neither the declaration nor the virtual host
    sets one. ``segment_size`` is the default segment size of streams in bytes. The limits apply to each virtual host,
    that on exclusive queues to each connection; 0 is no limit.
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
    """Validate a default queue type; empty is none. :raises PreconditionFailed: when it is unknown."""
    if name and name not in QUEUE_TYPES:
        raise PreconditionFailed(f"unsupported default queue type '{name}'")
