"""Verbs that close the node to clients and open it again."""

import time
from typing import Final

import click

from gateway.cli.ctl.errors import Declined
from gateway.cli.ctl.session import VerbSession
from gateway.cli.ctl.values import number
from gateway.cli.ctl.verb import DEFAULT_TIMEOUT_S, verb
from gateway.cli.ctl.verbs.node.leadership import (
    cluster_state,
    drain_member,
    require_this_node,
    revive_member,
    wait_for_successor,
)

_POLL_S: Final = 0.2
_SINGLE_NODE: Final = "Target node seems to be the only one in a single node cluster, the command does not apply"


@verb
@click.argument("member", metavar="[NODE]", required=False)
@click.option("--no-wait", is_flag=True, help="Do not wait until all connections are closed.")
def drain(session: VerbSession, member: str | None, no_wait: bool) -> None:
    """Put a node in maintenance mode: listeners of clients are closed, then their connections, one by one.

    In a cluster NODE is required; the leader hands the leadership over.
    """
    if (cluster := cluster_state(session)) is not None:
        drain_member(session, cluster, member, no_wait)
        return
    require_this_node(session, member)
    session.output.announce(
        f"Will put node {session.node()} into maintenance mode. The node will no longer serve any client traffic!"
    )
    with session.controlling():
        session.api.put("maintenance", body={})
    if not no_wait:
        _wait_for_connections(session)


@verb
@click.argument("member", metavar="[NODE]", required=False)
def revive(session: VerbSession, member: str | None) -> None:
    """Put a node out of maintenance mode: it serves clients again, at the same ports. In a cluster NODE is required."""
    if (cluster := cluster_state(session)) is not None:
        revive_member(session, cluster, member)
        return
    require_this_node(session, member)
    session.output.announce(
        f"Will put node {session.node()} back into regular operating mode. "
        "The node will again serve client traffic and host primary queue replicas."
    )
    with session.controlling():
        session.api.delete("maintenance")


@verb
def suspend_listeners(session: VerbSession) -> None:
    """Close the listeners of clients; existing connections stay."""
    session.output.announce(
        f"Will suspend client connection listeners on node {session.node()}. "
        "The node will no longer accept client connections!"
    )
    with session.controlling():
        session.api.put("maintenance", "listeners", body={})


@verb
def resume_listeners(session: VerbSession) -> None:
    """Open the listeners of clients that suspend_listeners has closed."""
    session.output.announce(
        f"Will resume client connection listeners on node {session.node()}. The node will now accept client connections"
    )
    with session.controlling():
        session.api.delete("maintenance", "listeners")


@verb
def await_online_quorum_plus_one(session: VerbSession) -> None:
    """Wait until another node can lead the cluster; at once for a node that runs alone."""
    session.output.announce("Will wait for a quorum + 1 of nodes to be online for all quorum queues ...")
    _await_successor(session)


@verb
def await_online_synchronized_mirror(session: VerbSession) -> None:
    """Wait until queues have a mirror on another node: as await_online_quorum_plus_one, whose data are the same."""
    session.output.announce("Will wait for a synchronised mirror be online for all classic mirrored queues ...")
    _await_successor(session)


def _await_successor(session: VerbSession) -> None:
    session.api.get("whoami")
    if cluster_state(session) is None:
        session.output.conclude(_SINGLE_NODE)
        return
    wait_for_successor(session)


@verb
def post_upgrade(session: VerbSession) -> None:
    """Run the tasks after an upgrade: there are none, as one node has all queues."""
    session.output.announce("Executing post upgrade tasks...")
    if cluster_state(session) is None:
        session.api.post("rebalance", "queues", body=b"{}")


def _wait_for_connections(session: VerbSession) -> None:
    ends_s = time.monotonic() + (DEFAULT_TIMEOUT_S if session.timeout_s is None else session.timeout_s)
    with session.progress.during("closing connections"):
        while left := number(session.api.get("maintenance"), "connections_left"):
            session.progress.say(f"closing connections, {left} left")
            if time.monotonic() > ends_s:
                raise Declined(f"{left} connections are still open")
            time.sleep(_POLL_S)


VERBS = (
    drain,
    revive,
    suspend_listeners,
    resume_listeners,
    await_online_quorum_plus_one,
    await_online_synchronized_mirror,
    post_upgrade,
)
