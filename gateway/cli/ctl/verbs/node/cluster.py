"""Verbs of rabbitmqctl, rabbitmq-queues and rabbitmq-diagnostics about clusters, as one node answers them."""

from typing import Final

import click

from gateway.cli.ctl.checks import Check
from gateway.cli.ctl.errors import Declined, UnknownEntity
from gateway.cli.ctl.session import VerbSession
from gateway.cli.ctl.values import Json, JsonObject, part, text
from gateway.cli.ctl.verb import verb
from gateway.cli.ctl.verbs.status import alarm_lines

_ONLY_NODE: Final = "seems to be the only one in a single node cluster, the check does not apply"
_QUORUM_COLUMNS: Final = ("Node Name", "Raft State", "Log Index", "Commit Index", "Snapshot Index", "Term")
_REBALANCED: Final = ("Node name", "Number of quorum queues", "Number of replicated classic queues")


@verb
def cluster_status(session: VerbSession) -> None:
    """Print the status of the cluster, which is this node."""
    overview = session.api.get("overview")
    node = session.api.get("nodes", text(overview, "node"))
    session.output.announce(f"Cluster status of node {text(overview, 'node')} ...")
    found = _cluster(overview, node)
    if session.output.formatter == "json":
        session.output.value(found)
        return
    name = text(overview, "node")
    maintenance = "under maintenance" if part(node, "being_drained") is True else "not under maintenance"
    alarms = list(alarm_lines(node))
    for title, lines in (
        ("Basics", [f"Cluster name: {text(overview, 'cluster_name')}"]),
        ("Disk Nodes", [name]),
        ("Running Nodes", [name]),
        ("Versions", [f"{name}: {text(overview, 'product_name')} {text(overview, 'product_version')}"]),
        ("Maintenance status", [f"Node: {name}, status: {maintenance}"]),
        ("Alarms", alarms or ["(none)"]),
        ("Network Partitions", ["(none)"]),
    ):
        session.output.text("\n".join([click.style(title, bold=True), "", *lines, ""]))


def _cluster(overview: Json, node: Json) -> JsonObject:
    name = text(overview, "node")
    alarms: list[Json] = list(alarm_lines(node))
    is_drained = part(node, "being_drained") is True
    return {
        "cluster_name": part(overview, "cluster_name"),
        "disk_nodes": [name],
        "ram_nodes": [],
        "running_nodes": [name],
        "partitions": {},
        "alarms": alarms,
        "maintenance_status": {name: "under maintenance" if is_drained else "not under maintenance"},
        "versions": {name: {"rabbitmq_version": part(overview, "rabbitmq_version")}},
    }


@verb
@click.argument("queue")
def quorum_status(session: VerbSession, queue: str) -> None:
    """Show the member of a quorum queue: this node, which leads it. There is no Raft log, so it has no indexes."""
    node = session.node()
    session.output.announce(f"Status of quorum queue {queue} on node {node} ...")
    _require_quorum(session, queue, "get quorum status of")
    row: JsonObject = {**dict.fromkeys(_QUORUM_COLUMNS, "undefined"), "Node Name": node, "Raft State": "leader"}
    session.output.rows(_QUORUM_COLUMNS, [row])


@verb
def check_if_node_is_quorum_critical(session: VerbSession) -> None:
    """Check that no quorum queue would lose its quorum without this node: it is the only one."""
    _check_if_critical(session, "quorum", "quorum of any quorum queues")


@verb
def check_if_node_is_mirror_sync_critical(session: VerbSession) -> None:
    """Check that no mirrored queue would lose data without this node: it is the only one."""
    _check_if_critical(session, "mirror-sync", "data safety of any classic mirrored queues")


def _check_if_critical(session: VerbSession, kind: str, purpose: str) -> None:
    question = f"Checking if node {{node}} is critical for {purpose} ..."
    Check(f"node-is-{kind}-critical", question=question, answer=f"Node {{node}} {_ONLY_NODE}").run(session)


@verb
@click.argument("type", type=click.Choice(["all", "classic", "quorum"]))
@click.option("--vhost-pattern", default=".*", help="Accepted for compatibility.")
@click.option("--queue-pattern", default=".*", help="Accepted for compatibility.")
def rebalance(session: VerbSession, type: str, vhost_pattern: str, queue_pattern: str) -> None:
    """Distribute the leaders of queues over the nodes: all are on this one."""
    session.output.announce(f"Re-balancing leaders of {type} queues...")
    session.api.post("rebalance", "queues", body=b"{}")
    found = session.api.list("queues", query={"columns": "type"})
    quorum = sum(text(each, "type") == "quorum" for each in found)
    row: JsonObject = dict(zip(_REBALANCED, (session.node(), quorum, 0), strict=True))
    session.output.rows(_REBALANCED, [row])


@verb
@click.argument("queue")
@click.argument("member")
@click.option("--membership", default="voter", help="Accepted for compatibility.")
def add_member(session: VerbSession, queue: str, member: str, membership: str) -> None:
    """Add a member of a quorum queue on a node: this node is the only one, and is a member."""
    session.output.announce(f"Adding a replica for queue {queue} on node {member}...")
    _require_quorum(session, queue, "add members to")
    if member != session.node():
        raise Declined(f"node {member} is not running: a gateway is a single node")


@verb
@click.argument("queue")
@click.argument("member")
def delete_member(session: VerbSession, queue: str, member: str) -> None:
    """Remove a member of a quorum queue: refused, as this node is the only one."""
    session.output.announce(f"Removing a replica of queue {queue} on node {member}...")
    _require_quorum(session, queue, "delete members from")
    if member == session.node():
        raise Declined("the last node cannot be removed")
    raise Declined(f"queue '{queue}' has no member on node {member}: a gateway is a single node")


@verb
@click.argument("member")
@click.argument("strategy", type=click.Choice(["all", "even"]))
@click.option("--vhost-pattern", default=".*", help="Accepted for compatibility.")
@click.option("--queue-pattern", default=".*", help="Accepted for compatibility.")
@click.option("--errors-only", is_flag=True, help="Accepted for compatibility.")
def grow(
    session: VerbSession, member: str, strategy: str, vhost_pattern: str, queue_pattern: str, errors_only: bool
) -> None:
    """Add members of quorum queues on a node: this node is the only one, and has all."""
    session.output.announce(f"Growing {strategy} quorum queues on {member}...")
    if member != session.node():
        raise Declined(f"node {member} is not running: a gateway is a single node")


@verb
@click.argument("member")
@click.option("--errors-only", is_flag=True, help="Accepted for compatibility.")
def shrink(session: VerbSession, member: str, errors_only: bool) -> None:
    """Remove the members of quorum queues from a node: refused for each, as this node is the only one."""
    session.output.announce(f"Shrinking quorum queues on {member}...")
    if member != session.node():
        return
    columns = ("vhost", "name", "size", "result")
    found = [each for each in session.api.list("queues") if text(each, "type") == "quorum"]
    error = "error: the last node cannot be removed"
    session.output.rows(columns, [{**each, "size": 1, "result": error} for each in found])


@verb
@click.argument("queue")
def reclaim_quorum_memory(session: VerbSession, queue: str) -> None:
    """Flush the Raft log of a quorum queue: there is none; its messages are in the store of all queues."""
    session.output.announce(f"Will flush Raft WAL of quorum queue {queue} ...")
    _require_quorum(session, queue, "reclaim memory of")


@verb
@click.argument("name", required=False)
def restart_vhost(session: VerbSession, name: str | None) -> None:
    """Restart a virtual host that failed: it always runs."""
    vhost, node = name or session.vhost, session.node()
    session.output.announce(f"Trying to restart vhost '{vhost}' on node '{node}' ...")
    with session.on_not_found(Declined(f"Virtual host '{vhost}' does not exist")):
        session.api.get("vhosts", vhost)
    session.output.conclude(f"Vhost '{vhost}' is already running on node '{node}'")


def _require_quorum(session: VerbSession, queue: str, action: str) -> None:
    """Require a quorum queue. :raises Declined: if it does not exist, or is of another type."""
    try:
        found = session.api.get("queues", session.vhost, queue, query={"columns": "type"})
    except UnknownEntity:
        raise Declined(f"queue '{queue}' does not exist in vhost '{session.vhost}'") from None
    if (type := text(found, "type")) != "quorum":
        raise Declined(f"Cannot {action} a {type} queue")


VERBS = (
    cluster_status,
    quorum_status,
    check_if_node_is_quorum_critical,
    check_if_node_is_mirror_sync_critical,
    rebalance,
    add_member,
    delete_member,
    grow,
    shrink,
    reclaim_quorum_memory,
    restart_vhost,
)
