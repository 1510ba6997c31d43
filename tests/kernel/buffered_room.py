"""The expected use of the memory budget: the room of all messages that queues keep within it."""

from gateway.kernel.backlog.buffered_runs import room_of
from gateway.testing import MemoryBroker


def buffered_room(broker: MemoryBroker) -> int:
    """Return the sum of the room of all messages that the broker's queues keep within the budget."""
    return sum(
        room_of(entry)
        for vhost in broker.kernel.vhost_by_name.values()
        for queue in vhost.queue_by_name.values()
        if not queue.is_stream
        for row in queue.ready.rows()
        for entry in row.kept()
    )
