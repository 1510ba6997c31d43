"""/queues/quorum: the replicas of quorum queues, each of which has its only one on this node."""

from collections.abc import Generator

from gateway.kernel.queueing.queue_like import QueueLike
from gateway.management.http.access_levels import AccessLevel
from gateway.management.http.bodies import require
from gateway.management.http.call import Call
from gateway.management.http.errors import HttpError, missing
from gateway.management.http.routes import Fields, LongTask, Routes
from gateway.management.queue_search import any_queue
from gateway.management.views.queues import queue_type

routes = Routes()


@routes.get("/queues/quorum/<vhost>/<name>/status")
def status(call: Call, vhost: str, name: str) -> list[Fields]:
    """Return the replicas of a quorum queue: one, which is the leader."""
    _quorum_queue(call, vhost, name)
    return [{"Node Name": call.broker.node, "Raft State": "leader", "Membership": "voter"}]


@routes.post("/queues/quorum/<vhost>/<name>/replicas/add", level=AccessLevel.ADMINISTRATOR)
def add_replica(call: Call, vhost: str, name: str) -> None:
    """Add a replica on a node; refused, because this node has one already and there is no other."""
    _quorum_queue(call, vhost, name)
    (node,) = require(call.fields, "node")
    if node != call.broker.node:
        raise _refused(f"node {node} is not running: {call.broker.node} is the only node")
    raise _refused("already_a_member")


@routes.delete("/queues/quorum/<vhost>/<name>/replicas/delete", level=AccessLevel.ADMINISTRATOR)
def delete_replica(call: Call, vhost: str, name: str) -> None:
    """Delete the replica on a node; refused, because a queue keeps its last one."""
    _quorum_queue(call, vhost, name)
    (node,) = require(call.fields, "node")
    raise _refused("last_node" if node == call.broker.node else "not_a_member")


@routes.post("/queues/quorum/replicas/on/<node>/grow", level=AccessLevel.ADMINISTRATOR)
def grow(call: Call, node: str) -> None:
    """Add replicas of the matching queues to a node; all have theirs on this node already."""
    _require_node(call, node)
    require(call.fields, "vhost_pattern", "queue_pattern", "strategy")


@routes.delete("/queues/quorum/replicas/on/<node>/shrink", level=AccessLevel.ADMINISTRATOR)
def shrink(call: Call, node: str) -> LongTask:
    """Delete all replicas on a node; refused if there are any, because they are the last ones."""
    _require_node(call, node)
    return LongTask(_shrink(call))


def _shrink(call: Call) -> Generator[None, None, None]:
    if (yield from any_queue(call.broker, _is_quorum)):
        raise _refused("last_node")


def _quorum_queue(call: Call, vhost: str, name: str) -> None:
    queue = call.vhost(vhost).queue_by_name.get(name)
    if queue is None:
        raise missing()
    if not _is_quorum(queue):
        raise _refused(f"{queue_type(queue)}_queue_not_supported")


def _is_quorum(queue: QueueLike) -> bool:
    return queue.arguments.get("x-queue-type") == "quorum"


def _require_node(call: Call, node: str) -> None:
    if node != call.broker.node:
        raise missing()


def _refused(reason: str) -> HttpError:
    return HttpError(503, "service_unavailable", reason)
