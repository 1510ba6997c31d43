"""Consumer arguments (``basic.consume``): names, values and RabbitMQ's error texts."""

from typing import TYPE_CHECKING

from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.messages.message import Arguments
from gateway.kernel.settings.arguments import type_name

if TYPE_CHECKING:
    from gateway.kernel.queueing.queue_identity import QueueIdentity


def priority_of(queue: "QueueIdentity", arguments: Arguments) -> int:
    """Return the requested consumer priority (R92).

    :raises PreconditionFailed: for an argument that the queue's type does not support, or a non-integer priority.
    """
    kind = str(queue.arguments.get("x-queue-type", "classic"))
    for name in arguments:
        if name == "x-priority" if kind == "stream" else name.startswith("x-stream-"):
            raise PreconditionFailed(f"invalid arg '{name}' for {queue.entity} of queue type rabbit_{kind}_queue")
    priority = arguments.get("x-priority", 0)
    if isinstance(priority, bool) or not isinstance(priority, int):
        wrong = f'"expected integer, got {type_name(priority)}"'
        raise PreconditionFailed(f"invalid arg 'x-priority' for {queue.entity}: {wrong}")
    return priority
