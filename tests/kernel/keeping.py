"""What the reserve should have given out: exactly the room of the messages that are kept on it."""

from gateway.kernel.backlog.buffered_runs import room_of
from gateway.testing import MemoryBroker


def room_of_what_is_kept(broker: MemoryBroker) -> int:
    """Weigh anew every message that any queue of the broker keeps on the reserve."""
    return sum(
        room_of(entry)
        for vhost in broker.kernel.vhost_by_name.values()
        for queue in vhost.queue_by_name.values()
        for row in queue.ready.rows()
        for entry in row.kept()
    )
