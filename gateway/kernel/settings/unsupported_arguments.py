"""Arguments that a queue type does not support, because they belong to another type (R49)."""

from collections.abc import Mapping
from typing import Final

from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.messages.message import Value

#: Queue type to the arguments that are refused for it.
_FOREIGN: Final[Mapping[str, frozenset[str]]] = {
    "classic": frozenset(
        {
            "x-dead-letter-strategy",
            "x-initial-cluster-size",
            "x-max-age",
            "x-max-in-memory-bytes",
            "x-max-in-memory-length",
            "x-quorum-initial-group-size",
            "x-stream-filter-size-bytes",
            "x-stream-max-segment-size-bytes",
        }
    ),
    "quorum": frozenset(
        {
            "x-initial-cluster-size",
            "x-max-age",
            "x-max-priority",
            "x-queue-mode",
            "x-queue-version",
            "x-stream-filter-size-bytes",
            "x-stream-max-segment-size-bytes",
        }
    ),
    "stream": frozenset(
        {
            "x-dead-letter-exchange",
            "x-dead-letter-routing-key",
            "x-dead-letter-strategy",
            "x-delivery-limit",
            "x-expires",
            "x-max-in-memory-bytes",
            "x-max-in-memory-length",
            "x-max-length",
            "x-max-priority",
            "x-message-ttl",
            "x-overflow",
            "x-queue-mode",
            "x-queue-version",
            "x-quorum-initial-group-size",
            "x-single-active-consumer",
            # not in RabbitMQ, or only in its plugins
            "x-cache-size",
            "x-cache-ttl",
            "x-delayed-delivery",
            "x-expire-mode",
            "x-message-deduplication",
            "x-retry-delays",
        }
    ),
}


def require_supported(entity: str, queue_type: Value, argument: str) -> None:
    """Check that an argument is supported by the queue type; an invalid type is refused elsewhere.

    :raises PreconditionFailed: with the argument and the type.
    """
    if isinstance(queue_type, str) and argument in _FOREIGN.get(queue_type, ()):
        raise PreconditionFailed(f"invalid arg '{argument}' for {entity} of queue type rabbit_{queue_type}_queue")
