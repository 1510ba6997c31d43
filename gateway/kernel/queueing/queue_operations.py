"""The operations of queues that streams do not support, such as ``basic.get``."""

from gateway.kernel.errors import NotImplementedHere
from gateway.kernel.queueing.queue import Queue
from gateway.kernel.queueing.queue_like import QueueLike


def require_queue(found: QueueLike, operation: str) -> Queue:
    """Return a queue that supports an operation. :raises NotImplementedHere: if it is a stream (540 in RabbitMQ)."""
    if not isinstance(found, Queue):
        raise NotImplementedHere(f"{operation} not supported by stream queues {found.entity}")
    return found
