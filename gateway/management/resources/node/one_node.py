"""RabbitMQ's resources for clusters and maintenance, as answered by a single node without replicas."""

from typing import Final

from twisted.internet.defer import Deferred

from gateway.management.http.access_levels import AccessLevel
from gateway.management.http.bodies import require
from gateway.management.http.call import Call
from gateway.management.http.errors import bad_request, missing, unknown_vhost
from gateway.management.http.routes import Fields, Reply, Routes

routes = Routes()

#: Actions on mirrored queues, which have no effect without mirrors.
_ACTIONS: Final = ("sync", "cancel_sync")

_OK: Final = {"status": "ok"}


@routes.post("/rebalance/queues", level=AccessLevel.ADMINISTRATOR)
def rebalance(call: Call) -> "Deferred[None] | None":
    """Spread the leaders of cells over the nodes: nothing to do for one node; refused while there is one cell."""
    if call.context.cells is not None and call.context.cluster_control is not None:
        return Deferred.fromCoroutine(call.context.cluster_control.rebalance())
    if call.cluster is not None:
        raise bad_request(
            f"all queues of a cluster are on its leader, {call.cluster.leader}; to move them: "
            "gatewayctl transfer_leadership NODE, or PUT /api/cluster/leader"
        )
    return None


@routes.post("/queues/<vhost>/<name>/actions", level=AccessLevel.ADMINISTRATOR)
def act(call: Call, vhost: str, name: str) -> None:
    """Start or cancel the synchronisation of a queue's mirrors; nothing to do."""
    if name not in call.vhost(vhost).queue_by_name:
        raise missing()
    (action,) = require(call.fields, "action")
    if action not in _ACTIONS:
        raise bad_request(["unknown", action])


@routes.post("/vhosts/<name>/start/<node>", level=AccessLevel.ADMINISTRATOR)
def start_vhost(call: Call, name: str, node: str) -> None:
    """Start a virtual host on a node; it is always running."""
    if name not in call.broker.vhost_by_name:
        raise unknown_vhost()
    if node != call.broker.node:
        raise bad_request(f"Request to node {node} failed with nodedown")


@routes.delete("/reset", level=AccessLevel.ADMINISTRATOR)
def reset(call: Call) -> None:
    """Delete rates and samples; counters are kept."""
    call.context.statistics.forget()


@routes.delete("/reset/<node>", level=AccessLevel.ADMINISTRATOR)
def reset_node(call: Call, node: str) -> None:
    """Delete the rates and samples of a node."""
    _require_node(call, node)
    call.context.statistics.forget()


@routes.get("/auth/attempts/<node>", level=AccessLevel.MONITORING)
def attempts(call: Call, node: str) -> list[Fields]:
    """Return the number of successful and failed logins by protocol."""
    _require_node(call, node)
    return [
        {
            "protocol": protocol,
            "auth_attempts": logins.succeeded + logins.failed,
            "auth_attempts_failed": logins.failed,
            "auth_attempts_succeeded": logins.succeeded,
        }
        for protocol, logins in sorted(call.broker.connections.logins_by_protocol.items())
    ]


@routes.delete("/auth/attempts/<node>", level=AccessLevel.ADMINISTRATOR)
def forget_attempts(call: Call, node: str) -> None:
    """Reset the numbers of logins."""
    _require_node(call, node)
    call.broker.connections.logins_by_protocol.clear()


@routes.get("/auth/throttle", level=AccessLevel.ADMINISTRATOR)
def throttle(call: Call) -> Fields:
    """Return the numbers of logins delayed or refused after failed ones, and of those waiting."""
    return dict(call.context.login_counts())


@routes.get("/auth/attempts/<node>/source", level=AccessLevel.MONITORING)
def attempts_by_source(call: Call, node: str) -> list[Fields]:
    """Return the sources of logins: none are recorded, as in RabbitMQ by default."""
    _require_node(call, node)
    return []


@routes.delete("/auth/attempts/<node>/source", level=AccessLevel.ADMINISTRATOR)
def forget_sources(call: Call, node: str) -> None:
    """Delete the sources of logins; nothing to do."""
    _require_node(call, node)


@routes.get(
    "/health/checks/metadata-store/initialized",
    "/health/checks/metadata-store/initialized/with-data",
    "/health/checks/reached-target-cluster-size",
)
def complete(call: Call) -> Reply:
    """Check the metadata store and the cluster size, which are always complete with a single node."""
    return Reply(200, _OK)


@routes.get("/health/checks/quorum-queues-without-elected-leaders/all-vhosts/pattern/<pattern>")
def leaders(call: Call, pattern: str) -> Reply:
    """Check that every quorum queue has a leader, which is always this node."""
    return Reply(200, _OK)


@routes.get("/health/checks/quorum-queues-without-elected-leaders/vhost/<vhost>/pattern/<pattern>")
def leaders_in_vhost(call: Call, vhost: str, pattern: str) -> Reply:
    """Check that every quorum queue of a virtual host has a leader."""
    call.vhost(vhost)
    return Reply(200, _OK)


def _require_node(call: Call, name: str) -> None:
    if name != call.broker.node:
        raise missing()
