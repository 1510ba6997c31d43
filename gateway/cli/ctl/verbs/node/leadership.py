"""Verbs that change a cluster of several nodes: who leads it, who is in service, who belongs to it."""

from collections.abc import Callable
from typing import Final

import click

from gateway.cli.ctl.errors import BrokerUnreachable, Declined, UnknownEntity
from gateway.cli.ctl.session import VerbSession
from gateway.cli.ctl.values import Json, JsonObject, objects, part, text
from gateway.cli.ctl.verb import DEFAULT_TIMEOUT_S, verb
from gateway.cli.ctl.waiting import wait_until

_ALONE: Final = "this node runs alone, not in a cluster"


def cluster_state(session: VerbSession) -> Json:
    """Return the state of the cluster; ``None`` from a broker that runs alone, and from RabbitMQ."""
    try:
        return session.api.get("cluster")
    except UnknownEntity:
        return None


def cells_of(cluster: Json) -> list[JsonObject]:
    """Return the cells of a cluster; none if it has only one."""
    return [] if part(cluster, "cells") is None else list(objects(part(cluster, "cells")))


def drain_member(session: VerbSession, cluster: Json, node: str | None, no_wait: bool) -> None:
    """Drain a node of a cluster, and wait until it is drained and another node leads."""
    name = _named(cluster, node, "drain")
    session.output.announce(
        f"Will put node {name} into maintenance mode. The node will no longer serve any client traffic!"
    )
    session.api.put("cluster", "nodes", name, "maintenance", body={})
    if not no_wait:
        _settle(session, f"draining {name}", lambda: _is_drained(session, name))


def revive_member(session: VerbSession, cluster: Json, node: str | None) -> None:
    """Put a node of a cluster into service again."""
    name = _named(cluster, node, "revive")
    session.output.announce(
        f"Will put node {name} back into regular operating mode. The node will again serve client traffic."
    )
    session.api.delete("cluster", "nodes", name, "maintenance")


def wait_for_successor(session: VerbSession) -> None:
    """Wait until a node that does not lead could do so."""

    def is_there() -> bool:
        leader = text(session.api.get("cluster"), "leader")
        nodes = session.api.list("nodes")
        others = [node for node in nodes if text(node, "name") != leader and part(node, "running") is True]
        return any(part(node, "being_drained") is not True for node in others)

    _settle(session, "waiting for another node that can lead", is_there)


def require_this_node(session: VerbSession, node: str | None) -> None:
    """Require no name, or that of a node that runs alone. :raises Declined: if it is another one."""
    if node is not None and node != session.node():
        raise Declined(f"the broker runs alone as {session.node()}; it has no node {node}")


@verb
@click.argument("member", metavar="[NODE]", required=False)
@click.option("--cell", type=int, default=1, show_default=True, help="The cell, if the cluster has several.")
@click.option("--no-wait", is_flag=True, help="Do not wait until the other node leads.")
def transfer_leadership(session: VerbSession, member: str | None, cell: int, no_wait: bool) -> None:
    """Hand the leadership of the cluster to NODE, or to any other node: all queues move, and clients connect again."""
    cluster = _require_cluster(session)
    former = _leader_of(cluster, cell)
    session.output.announce(f"Will transfer the leadership from node {former} to {member or 'another node'} ...")
    body: JsonObject = {} if member is None else {"node": member}
    session.api.put("cluster", "leader", body=body if cell == 1 else {**body, "cell": cell})
    if no_wait or member == former:
        return
    _settle(session, "transferring the leadership", lambda: _leads_another(session, former, cell))
    leader = _leader_of(session.api.get("cluster"), cell)
    if member is not None and leader != member:
        raise Declined(f"node {leader} leads instead of {member}, which did not stand for election in time")
    session.output.conclude(f"Node {leader} leads {'the cluster' if cell == 1 else f'cell {cell}'}")


@verb
@click.argument("member", metavar="NODE")
def forget_cluster_node(session: VerbSession, member: str) -> None:
    """Remove NODE, which will not come back, from the list of nodes; refused while it is alive."""
    _require_cluster(session)
    session.output.announce(f"Removing node {member} from the cluster")
    session.api.delete("cluster", "nodes", member)


def _require_cluster(session: VerbSession) -> Json:
    cluster = cluster_state(session)
    if cluster is None:
        raise Declined(_ALONE)
    return cluster


def _named(cluster: Json, node: str | None, action: str) -> str:
    """Return the name of the node that is meant: each node passes requests on to the leader, so it must be named."""
    if node is None:
        raise Declined(f"name the node of the cluster to {action}, such as: {action} {text(cluster, 'leader')}")
    return node


def _is_drained(session: VerbSession, name: str) -> bool:
    is_drained = part(session.api.get("nodes", name), "being_drained") is True
    cluster = session.api.get("cluster")
    leaders = [text(cluster, "leader"), *(text(cell, "leader") for cell in cells_of(cluster))]
    return is_drained and name not in leaders and "" not in leaders[1:]


def _leads_another(session: VerbSession, former: str, number: int) -> bool:
    leader = _leader_of(session.api.get("cluster"), number)
    return bool(leader) and leader != former


def _leader_of(cluster: Json, number: int) -> str:
    """Return the leader of a cell; empty if it has none. :raises Declined: if there is no such cell."""
    if number == 1:
        return text(cluster, "leader")
    leaders = [text(cell, "leader") for cell in cells_of(cluster) if part(cell, "cell") == number]
    if not leaders:
        raise Declined(f"the cluster has no cell {number}")
    return leaders[0]


def _settle(session: VerbSession, action: str, is_done: Callable[[], bool]) -> None:
    """Wait until ``is_done``; the API is not available while the leader changes.

    :raises TimedOut: after a while.
    """

    def is_settled() -> bool:
        try:
            return is_done()
        except (BrokerUnreachable, Declined):
            return False

    late = f"{action} takes long; gatewayctl cluster_status shows the state"
    wait_until(session, action, is_settled, default_s=DEFAULT_TIMEOUT_S, late=late)


VERBS = (transfer_leadership, forget_cluster_node)
