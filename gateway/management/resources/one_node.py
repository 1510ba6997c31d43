"""What RabbitMQ offers for clusters and their maintenance, as one node that has no replicas answers it."""

from typing import Final

from gateway.management.http.access_levels import AccessLevel
from gateway.management.http.bodies import require
from gateway.management.http.call import Call
from gateway.management.http.errors import bad_request, missing, unknown_vhost
from gateway.management.http.routes import Fields, Reply, Routes

routes = Routes()

#: What may be asked of a mirrored queue; there is nothing to do, since there are no mirrors.
_ACTIONS: Final = ("sync", "cancel_sync")

_OK: Final = {"status": "ok"}


@routes.post("/rebalance/queues", level=AccessLevel.ADMINISTRATOR)
def rebalance(call: Call) -> None:
    """Spread the queues evenly over the nodes: they are."""


@routes.post("/queues/<vhost>/<name>/actions", level=AccessLevel.ADMINISTRATOR)
def act(call: Call, vhost: str, name: str) -> None:
    """Bring the mirrors of a queue up to date, or stop doing so."""
    if name not in call.vhost(vhost).queue_by_name:
        raise missing()
    (action,) = require(call.fields, "action")
    if action not in _ACTIONS:
        raise bad_request(["unknown", action])


@routes.post("/vhosts/<name>/start/<node>", level=AccessLevel.ADMINISTRATOR)
def start_vhost(call: Call, name: str, node: str) -> None:
    """Start a virtual host on a node: it runs."""
    if name not in call.broker.vhost_by_name:
        raise unknown_vhost()
    if node != call.broker.node:
        raise bad_request(f"Request to node {node} failed with nodedown")


@routes.delete("/reset", level=AccessLevel.ADMINISTRATOR)
def reset(call: Call) -> None:
    """Forget rates and samples; what was counted stays."""
    call.context.statistics.forget()


@routes.delete("/reset/<node>", level=AccessLevel.ADMINISTRATOR)
def reset_node(call: Call, node: str) -> None:
    """Forget the rates and samples of a node."""
    _require_node(call, node)
    call.context.statistics.forget()


@routes.get("/auth/attempts/<node>", level=AccessLevel.ADMINISTRATOR)
def attempts(call: Call, node: str) -> list[Fields]:
    """Tell how many logins there were with each protocol, and how they ended."""
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
    """Count logins from 0 again."""
    _require_node(call, node)
    call.broker.connections.logins_by_protocol.clear()


@routes.get("/auth/throttle", level=AccessLevel.ADMINISTRATOR)
def throttle(call: Call) -> Fields:
    """Tell how many logins were delayed or refused because others failed, and how many wait now."""
    return dict(call.context.login_counts())


@routes.get("/auth/attempts/<node>/source", level=AccessLevel.ADMINISTRATOR)
def attempts_by_source(call: Call, node: str) -> list[Fields]:
    """Tell where logins came from: not counted, as in RabbitMQ unless it is configured to."""
    _require_node(call, node)
    return []


@routes.delete("/auth/attempts/<node>/source", level=AccessLevel.ADMINISTRATOR)
def forget_sources(call: Call, node: str) -> None:
    """Forget where logins came from."""
    _require_node(call, node)


@routes.get(
    "/health/checks/metadata-store/initialized",
    "/health/checks/metadata-store/initialized/with-data",
    "/health/checks/reached-target-cluster-size",
)
def complete(call: Call) -> Reply:
    """Whether the node knows of everything, and the cluster is as large as it should be: one node is both."""
    return Reply(200, _OK)


@routes.get("/health/checks/quorum-queues-without-elected-leaders/all-vhosts/pattern/<pattern>")
def leaders(call: Call, pattern: str) -> Reply:
    """Whether every quorum queue has a leader: this node is."""
    return Reply(200, _OK)


@routes.get("/health/checks/quorum-queues-without-elected-leaders/vhost/<vhost>/pattern/<pattern>")
def leaders_in_vhost(call: Call, vhost: str, pattern: str) -> Reply:
    """Whether every quorum queue of a virtual host has a leader."""
    call.vhost(vhost)
    return Reply(200, _OK)


def _require_node(call: Call, name: str) -> None:
    if name != call.broker.node:
        raise missing()
