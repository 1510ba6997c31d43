"""The nodes that have a queue: this one, or all alive ones of its cluster, in whose log it is."""

from gateway.kernel.queueing.queue_like import QueueLike
from gateway.kernel.streams.stream import Stream
from gateway.management.http.call import Call
from gateway.management.http.routes import Fields


def replica_nodes(call: Call) -> list[str]:
    """Return the nodes that a durable queue is on."""
    return [call.broker.node] if call.cluster is None else call.cluster.alive


def replica_fields(call: Call, queue: QueueLike) -> Fields:
    """Return the leader and the members of a queue; none for a classic queue of a single node, as in RabbitMQ."""
    is_replicated = call.cluster is not None and queue.is_durable and queue.owner is None
    if not is_replicated and not isinstance(queue, Stream) and queue.arguments.get("x-queue-type") != "quorum":
        return {}
    nodes = replica_nodes(call)
    return {"leader": call.broker.node, "members": nodes, "online": nodes}
