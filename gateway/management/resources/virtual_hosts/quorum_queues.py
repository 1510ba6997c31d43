"""/queues/quorum: the replicas of quorum queues: one on this node, or one on each node of a cluster, never others."""

from collections.abc import Generator
from typing import Final

from gateway.kernel.queueing.queue_like import QueueLike
from gateway.management.http.access_levels import AccessLevel
from gateway.management.http.bodies import require
from gateway.management.http.call import Call
from gateway.management.http.errors import HttpError, missing
from gateway.management.http.routes import Fields, LongTask, Routes
from gateway.management.queue_search import any_queue
from gateway.management.views.queues import queue_type
from gateway.management.views.replicas import replica_nodes

routes = Routes()

#: Why a replica cannot be deleted in a cluster.
_ON_ALL: Final = "each queue is on all nodes of the cluster"


@routes.get("/queues/quorum/<vhost>/<name>/status")
def status(call: Call, vhost: str, name: str) -> list[Fields]:
    """Return the replicas of a quorum queue; that of this node is the leader."""
    _quorum_queue(call, vhost, name)
    nodes = sorted(replica_nodes(call), key=lambda node: node != call.broker.node)
    return [
        {"Node Name": node, "Raft State": "follower" if at else "leader", "Membership": "voter"}
        for at, node in enumerate(nodes)
    ]


@routes.post("/queues/quorum/<vhost>/<name>/replicas/add", level=AccessLevel.ADMINISTRATOR)
def add_replica(call: Call, vhost: str, name: str) -> None:
    """Add a replica on a node; refused, because each node that is alive has one already."""
    _quorum_queue(call, vhost, name)
    (node,) = require(call.fields, "node")
    if node not in (nodes := replica_nodes(call)):
        alive = f"{nodes[0]} is the only node" if len(nodes) == 1 else f"the nodes are {', '.join(nodes)}"
        raise _refused(f"node {node} is not running: {alive}")
    raise _refused("already_a_member")


@routes.delete("/queues/quorum/<vhost>/<name>/replicas/delete", level=AccessLevel.ADMINISTRATOR)
def delete_replica(call: Call, vhost: str, name: str) -> None:
    """Delete the replica on a node; refused, because a queue keeps its last one, or is on all nodes of the cluster."""
    _quorum_queue(call, vhost, name)
    (node,) = require(call.fields, "node")
    nodes = replica_nodes(call)
    if node not in nodes:
        raise _refused("not_a_member")
    raise _refused("last_node" if len(nodes) == 1 else _ON_ALL)


@routes.post("/queues/quorum/replicas/on/<node>/grow", level=AccessLevel.ADMINISTRATOR)
def grow(call: Call, node: str) -> None:
    """Add replicas of the matching queues to a node; all have theirs there already."""
    _require_node(call, node)
    require(call.fields, "vhost_pattern", "queue_pattern", "strategy")


@routes.delete("/queues/quorum/replicas/on/<node>/shrink", level=AccessLevel.ADMINISTRATOR)
def shrink(call: Call, node: str) -> LongTask:
    """Delete all replicas on a node; refused if there are any: they are the last ones, or queues are on all nodes."""
    _require_node(call, node)
    return LongTask(_shrink(call))


def _shrink(call: Call) -> Generator[None, None, None]:
    if (yield from any_queue(call.broker, _is_quorum)):
        raise _refused("last_node" if len(replica_nodes(call)) == 1 else _ON_ALL)


def _quorum_queue(call: Call, vhost: str, name: str) -> None:
    queue = call.vhost(vhost).queue_by_name.get(name)
    if queue is None:
        raise missing()
    if not _is_quorum(queue):
        raise _refused(f"{queue_type(queue)}_queue_not_supported")


def _is_quorum(queue: QueueLike) -> bool:
    return queue.arguments.get("x-queue-type") == "quorum"


def _require_node(call: Call, node: str) -> None:
    if node not in replica_nodes(call):
        raise missing()


def _refused(reason: str) -> HttpError:
    return HttpError(503, "service_unavailable", reason)
