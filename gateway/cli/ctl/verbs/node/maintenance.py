"""Verbs that close the node to clients and open it again."""

import time
from typing import Final

import click

from gateway.cli.ctl.errors import Declined
from gateway.cli.ctl.session import VerbSession
from gateway.cli.ctl.values import number
from gateway.cli.ctl.verb import DEFAULT_TIMEOUT_S, verb

_POLL_S: Final = 0.2
_SINGLE_NODE: Final = "Target node seems to be the only one in a single node cluster, the command does not apply"


@verb
@click.option("--no-wait", is_flag=True, help="Do not wait until all connections are closed.")
def drain(session: VerbSession, no_wait: bool) -> None:
    """Put the node in maintenance mode: listeners of clients are closed, then their connections, one by one."""
    session.output.announce(
        f"Will put node {session.node()} into maintenance mode. The node will no longer serve any client traffic!"
    )
    with session.controlling():
        session.api.put("maintenance", body={})
    if not no_wait:
        _wait_for_connections(session)


@verb
def revive(session: VerbSession) -> None:
    """Put the node out of maintenance mode: it serves clients again, at the same ports."""
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
    """Wait until other nodes can replace this one: at once, as there is only one node."""
    session.output.announce("Will wait for a quorum + 1 of nodes to be online for all quorum queues ...")
    session.api.get("whoami")
    session.output.conclude(_SINGLE_NODE)


@verb
def await_online_synchronized_mirror(session: VerbSession) -> None:
    """Wait until queues have a mirror on another node: at once, as there is only one node."""
    session.output.announce("Will wait for a synchronised mirror be online for all classic mirrored queues ...")
    session.api.get("whoami")
    session.output.conclude(_SINGLE_NODE)


@verb
def post_upgrade(session: VerbSession) -> None:
    """Run the tasks after an upgrade: there are none, as there are no queues to rebalance."""
    session.output.announce("Executing post upgrade tasks...")
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
