"""/cluster: a cluster of several nodes; ``404`` for a node that runs alone.

Each node passes its clients to the leader, this API included, so whatever concerns one node names it.
"""

from collections.abc import Coroutine
from typing import Any

from twisted.internet.defer import Deferred

from gateway.management.cluster_control import ClusterControl
from gateway.management.http.access_levels import AccessLevel
from gateway.management.http.call import Call
from gateway.management.http.errors import bad_request, missing
from gateway.management.http.routes import Fields, Routes
from gateway.management.views.members import cluster_view

routes = Routes()


@routes.get("/cluster", level=AccessLevel.MONITORING)
def cluster(call: Call) -> Fields:
    """Return the state of the cluster as the leader sees it."""
    if call.cluster is None:
        raise missing()
    return cluster_view(call.cluster)


@routes.put("/cluster/nodes/<name>/maintenance", level=AccessLevel.ADMINISTRATOR)
def drain(call: Call, name: str) -> object:
    """Drain a node: its clients are closed, and if it leads, another node does so instead."""
    return _done(_control(call).drain(name))


@routes.delete("/cluster/nodes/<name>/maintenance", level=AccessLevel.ADMINISTRATOR)
def revive(call: Call, name: str) -> object:
    """Put a node into service again."""
    return _done(_control(call).revive(name))


@routes.delete("/cluster/nodes/<name>", level=AccessLevel.ADMINISTRATOR)
def forget(call: Call, name: str) -> object:
    """Delete a node that is not alive from the list of nodes."""
    return _done(_control(call).forget(name))


@routes.put("/cluster/leader", level=AccessLevel.ADMINISTRATOR)
def transfer(call: Call) -> object:
    """Hand the leadership over, soon: to the ``node`` of the body, or to any other one without it.

    In a cluster with several cells it is that of a ``cell``, by default the first one.
    """
    name, cell = call.fields.get("node", ""), call.fields.get("cell", 1)
    if not isinstance(name, str):
        raise bad_request("node must be the name of a node")
    if type(cell) is not int:
        raise bad_request("cell must be the number of a cell")
    return _done(_control(call).transfer(name, cell))


def _control(call: Call) -> ClusterControl:
    """Return the control of the cluster. :raises HttpError: if the node runs alone."""
    if call.context.cluster_control is None:
        raise missing()
    return call.context.cluster_control


def _done(change: Coroutine[Any, Any, None]) -> "Deferred[None]":
    return Deferred.fromCoroutine(change)
