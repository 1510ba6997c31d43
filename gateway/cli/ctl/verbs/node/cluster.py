"""Verbs of rabbitmqctl, rabbitmq-queues and rabbitmq-diagnostics about clusters."""

from collections.abc import Iterator
from typing import Final

import click

from gateway.cli.ctl.errors import Declined, UnknownEntity
from gateway.cli.ctl.session import VerbSession
from gateway.cli.ctl.values import Json, JsonObject, number, objects, part, text
from gateway.cli.ctl.verb import verb
from gateway.cli.ctl.verbs.node.leadership import cells_of, cluster_state
from gateway.cli.ctl.verbs.status import alarm_lines

_ONLY_NODE: Final = "seems to be the only one in a single node cluster, the check does not apply"
_QUORUM_COLUMNS: Final = ("Node Name", "Raft State", "Log Index", "Commit Index", "Snapshot Index", "Term")
_EVERYTHING: Final = ".*"
_REBALANCED: Final = ("Node name", "Number of quorum queues", "Number of replicated classic queues")


@verb
def cluster_status(session: VerbSession) -> None:
    """Print the status of the cluster: its nodes, and the one that leads; or this node, if it runs alone."""
    overview = session.api.get("overview")
    nodes = list(session.api.list("nodes"))
    cluster = cluster_state(session)
    session.output.announce(f"Cluster status of node {text(overview, 'node')} ...")
    if session.output.formatter == "json":
        session.output.value(_cluster(overview, nodes, cluster))
        return
    product = text(overview, "product_name")
    alarms = [line for node in nodes for line in alarm_lines(node)]
    for title, lines in (
        ("Basics", [f"Cluster name: {text(overview, 'cluster_name')}"]),
        *_cluster_sections(cluster),
        ("Disk Nodes", [text(node, "name") for node in nodes]),
        ("Running Nodes", [text(node, "name") for node in nodes if _is_running(node)]),
        ("Versions", [f"{text(n, 'name')}: {product} {_version_of(n, overview)}" for n in nodes]),
        ("Maintenance status", [f"Node: {text(node, 'name')}, status: {_maintenance(node)}" for node in nodes]),
        ("Alarms", alarms or ["(none)"]),
        ("Network Partitions", ["(none)"]),
    ):
        session.output.text("\n".join([click.style(title, bold=True), "", *lines, ""]))


def _cluster_sections(cluster: Json) -> Iterator[tuple[str, list[str]]]:
    """Yield what only a cluster of gateways has."""
    if cluster is None:
        return
    yield "Leader", [f"{text(cluster, 'leader') or '(none)'}, epoch {number(cluster, 'epoch')}"]
    if cells := [_cell_line(cell) for cell in cells_of(cluster)]:
        yield "Cells", cells
    answers = part(cluster, "engine", "answers") is True
    log = part(cluster, "log")
    yield (
        "Engine",
        [
            "answers" if answers else f"does not answer: {text(part(cluster, 'engine'), 'reason')}",
            *(f"Not checked, as it does not answer: {url}" for url in _unchecked(cluster)),
            f"Appends (ms): p50 {part(log, 'append_p50_ms')}, p99 {part(log, 'append_p99_ms')}",
            f"Moves of the log away from a slow server: {number(log, 'leader_moves')}",
            f"Log since the last checkpoint: {number(log, 'records_since_checkpoint')} records, "
            f"{number(log, 'bytes_since_checkpoint')} bytes",
            f"Last rebuild: {part(cluster, 'rebuild', 'seconds')} s, {number(cluster, 'rebuild', 'records')} records",
        ],
    )
    copies = [line for member in objects(part(cluster, "members")) if (line := _copy_line(member))]
    if copies:
        yield "Copies of followers", copies
    if doubt := text(cluster, "doubt"):
        yield "Doubt", [doubt]


def _cell_line(cell: JsonObject) -> str:
    leader = text(cell, "leader") or "(no leader)"
    epoch, vhosts = number(cell, "epoch"), number(cell, "vhosts")
    return f"Cell {number(cell, 'cell')}: {leader}, epoch {epoch}, virtual hosts: {vhosts}"


def _unchecked(cluster: Json) -> list[Json]:
    found = part(cluster, "engine", "unchecked")
    return found if isinstance(found, list) else []


def _copy_line(member: JsonObject) -> str:
    """Return how far the copy of a follower is behind; empty without one."""
    copy = part(member, "copy")
    if copy is None:
        return ""
    behind = f"{part(copy, 'behind_seconds')} s, {number(copy, 'behind_batches')} batches behind"
    return f"Node: {text(member, 'name')}, {behind}"


def _cluster(overview: Json, nodes: list[JsonObject], cluster: Json) -> JsonObject:
    alarms: list[Json] = [line for node in nodes for line in alarm_lines(node)]
    names = [text(node, "name") for node in nodes]
    compatible = part(overview, "rabbitmq_version")
    return {
        "cluster_name": part(overview, "cluster_name"),
        "disk_nodes": [*names],
        "ram_nodes": [],
        "running_nodes": [text(node, "name") for node in nodes if _is_running(node)],
        "partitions": {},
        "alarms": alarms,
        "maintenance_status": {text(node, "name"): _maintenance(node) for node in nodes},
        "versions": {name: {"rabbitmq_version": compatible} for name in names},
        **({} if cluster is None else {"leader": part(cluster, "leader"), "cluster": cluster}),
    }


def _is_running(node: Json) -> bool:
    return part(node, "running") is not False


def _maintenance(node: Json) -> str:
    return "under maintenance" if part(node, "being_drained") is True else "not under maintenance"


def _version_of(node: Json, overview: Json) -> str:
    """Return the version of a gateway or of RabbitMQ on a node."""
    applications = part(node, "applications")
    named = {text(each, "name"): text(each, "version") for each in objects(applications)} if applications else {}
    return named.get("gateway") or named.get("rabbit") or text(overview, "product_version")


@verb
@click.argument("queue")
def quorum_status(session: VerbSession, queue: str) -> None:
    """Show the members of a quorum queue: one, or the nodes of the cluster. Without Raft logs they have no indexes."""
    node = session.node()
    session.output.announce(f"Status of quorum queue {queue} on node {node} ...")
    _require_quorum(session, queue, "get quorum status of")
    try:
        found = list(session.api.list("queues", "quorum", session.vhost, queue, "status"))
    except UnknownEntity:  # an earlier broker
        found = [{"Node Name": node, "Raft State": "leader"}]
    undefined: JsonObject = dict.fromkeys(_QUORUM_COLUMNS, "undefined")
    session.output.rows(_QUORUM_COLUMNS, [{**undefined, **member} for member in found])


@verb
def check_if_node_is_quorum_critical(session: VerbSession) -> None:
    """Check that no quorum queue would lose its quorum without this node: that another can lead, or it is alone."""
    _check_if_critical(session, "quorum", "quorum of any quorum queues")


@verb
def check_if_node_is_mirror_sync_critical(session: VerbSession) -> None:
    """Check that no mirrored queue would lose data without this node: that another can lead, or it is alone."""
    _check_if_critical(session, "mirror-sync", "data safety of any classic mirrored queues")


def _check_if_critical(session: VerbSession, kind: str, purpose: str) -> None:
    node = session.node()
    session.output.announce(f"Checking if node {node} is critical for {purpose} ...")
    found = session.api.get("health", "checks", f"node-is-{kind}-critical")
    is_alone = text(found, "reason") == "single node cluster"
    session.output.conclude(f"Node {node} {_ONLY_NODE if is_alone else f'is not critical for {purpose}'}")


@verb
@click.argument("type", type=click.Choice(["all", "classic", "quorum", "stream", "queues"]))
@click.option("--vhost-pattern", default=_EVERYTHING, help="Refused in a cluster with several cells.")
@click.option("--queue-pattern", default=_EVERYTHING, help="Refused in a cluster with several cells.")
def rebalance(session: VerbSession, type: str, vhost_pattern: str, queue_pattern: str) -> None:
    """Distribute the leaders of cells, with all their queues; refused in a cluster with one cell."""
    cells = cells_of(cluster_state(session))
    if cells:
        _require_whole_cells(vhost_pattern, queue_pattern)
        session.output.announce("Re-balancing leaders of cells, each with queues of all types...")
    else:
        session.output.announce(f"Re-balancing leaders of {'all' if type == 'queues' else type} queues...")
    session.api.post("rebalance", "queues", body=b"{}")
    found = list(session.api.list("queues", query={"columns": "type,leader"}))
    rows: list[JsonObject] = []
    for node in sorted({text(cell, "leader") for cell in cells} - {""}) or [session.node()]:
        quorum = sum(text(each, "type") == "quorum" for each in found if not cells or text(each, "leader") == node)
        rows.append(dict(zip(_REBALANCED, (node, quorum, 0), strict=True)))
    session.output.rows(_REBALANCED, rows)


def _require_whole_cells(vhost_pattern: str, queue_pattern: str) -> None:
    """Require patterns that match everything, as a leader has all queues of its cell. :raises Declined: if not."""
    for option, pattern in (("--vhost-pattern", vhost_pattern), ("--queue-pattern", queue_pattern)):
        if pattern != _EVERYTHING:
            raise Declined(f"{option} can have no effect: a cell moves with all its queues; leave it out")


@verb
@click.argument("queue")
@click.argument("member")
@click.option("--membership", default="voter", help="Accepted for compatibility.")
def add_member(session: VerbSession, queue: str, member: str, membership: str) -> None:
    """Add a member of a quorum queue on a node: each node that is alive is one already."""
    session.output.announce(f"Adding a replica for queue {queue} on node {member}...")
    _require_quorum(session, queue, "add members to")
    _require_running(session, member)


@verb
@click.argument("queue")
@click.argument("member")
def delete_member(session: VerbSession, queue: str, member: str) -> None:
    """Remove a member of a quorum queue: refused, as it is the last one, or the queue is on all nodes of a cluster."""
    session.output.announce(f"Removing a replica of queue {queue} on node {member}...")
    _require_quorum(session, queue, "delete members from")
    running = _running_nodes(session)
    if member not in running:
        raise Declined(f"queue '{queue}' has no member on node {member}; it is on {', '.join(running)}")
    raise Declined("the last node cannot be removed" if len(running) == 1 else "a queue is on all nodes of the cluster")


@verb
@click.argument("member")
@click.argument("strategy", type=click.Choice(["all", "even"]))
@click.option("--vhost-pattern", default=".*", help="Accepted for compatibility.")
@click.option("--queue-pattern", default=".*", help="Accepted for compatibility.")
@click.option("--errors-only", is_flag=True, help="Accepted for compatibility.")
def grow(
    session: VerbSession, member: str, strategy: str, vhost_pattern: str, queue_pattern: str, errors_only: bool
) -> None:
    """Add members of quorum queues on a node: each node that is alive has all."""
    session.output.announce(f"Growing {strategy} quorum queues on {member}...")
    _require_running(session, member)


@verb
@click.argument("member")
@click.option("--errors-only", is_flag=True, help="Accepted for compatibility.")
def shrink(session: VerbSession, member: str, errors_only: bool) -> None:
    """Remove the members of quorum queues from a node: refused for each, as for delete_member."""
    session.output.announce(f"Shrinking quorum queues on {member}...")
    running = _running_nodes(session)
    if member not in running:
        return
    columns = ("vhost", "name", "size", "result")
    found = [each for each in session.api.list("queues") if text(each, "type") == "quorum"]
    size = len(running)
    error = f"error: {'the last node cannot be removed' if size == 1 else 'a queue is on all nodes of the cluster'}"
    session.output.rows(columns, [{**each, "size": size, "result": error} for each in found])


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


def _running_nodes(session: VerbSession) -> list[str]:
    """Return the nodes that run: the other ones of a cluster are in the list of nodes."""
    nodes = [text(node, "name") for node in session.api.list("nodes") if _is_running(node)]
    return nodes or [session.node()]


def _require_running(session: VerbSession, member: str) -> None:
    """Require a node that runs. :raises Declined: if it does not."""
    running = _running_nodes(session)
    if member not in running:
        raise Declined(f"node {member} is not running; these are: {', '.join(running)}")


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
