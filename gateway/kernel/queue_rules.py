"""What the operator of a node decided for the queues of all its virtual hosts."""

from dataclasses import dataclass
from typing import Final

from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.queue import RESIDENT_MESSAGES

QUEUE_TYPES: Final = ("classic", "quorum")


@dataclass(frozen=True, slots=True)
class QueueRules:
    """Rules that queues are declared and built by.

    ``resident_messages`` is how many messages of a queue stay in memory. ``default_type`` is what a queue becomes that
    is declared without a type in a virtual host that has no default of its own.
    """

    resident_messages: int = RESIDENT_MESSAGES
    permits_transient: bool = True
    default_type: str = "classic"


def require_known_type(name: str) -> None:
    """Refuse a default type that no queue can have; empty is none. :raises PreconditionFailed: naming it."""
    if name and name not in QUEUE_TYPES:
        raise PreconditionFailed(f"unsupported default queue type '{name}'")
