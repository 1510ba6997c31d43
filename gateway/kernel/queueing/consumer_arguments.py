"""What somebody who begins to consume may ask for by name and value, in RabbitMQ's words."""

from typing import TYPE_CHECKING

from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.messages.message import Arguments
from gateway.kernel.settings.arguments import type_name

if TYPE_CHECKING:
    from gateway.kernel.queueing.queue import Queue


def priority_of(queue: "Queue", arguments: Arguments) -> int:
    """Return the consumer priority asked for (R92).

    :raises PreconditionFailed: for an argument that consumers of such a queue do not have, and a priority that is none.
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
