"""Verbs of rabbitmq-diagnostics about the state of the node."""

import click

from gateway.cli.ctl.errors import CommandFailed, Declined, StillStarting
from gateway.cli.ctl.session import VerbSession
from gateway.cli.ctl.values import compact, part, text
from gateway.cli.ctl.verb import verb
from gateway.cli.ctl.verbs.node.message_sizes import message_size_stats
from gateway.cli.ctl.verbs.status import alarm_lines

#: Sections of a report, and what the API returns for them.
_REPORT = (
    ("Overview", ("overview",)),
    ("Node", ("nodes",)),
    ("Settings in effect", ("settings",)),
    ("TLS", ("tls",)),
    ("Store", ("store",)),
    ("Virtual hosts", ("vhosts",)),
    ("Users", ("users",)),
    ("Permissions", ("permissions",)),
    ("Policies", ("policies",)),
    ("Operator policies", ("operator-policies",)),
    ("Parameters", ("parameters",)),
    ("Connections", ("connections",)),
    ("Channels", ("channels",)),
    ("Exchanges", ("exchanges",)),
    ("Queues", ("queues",)),
    ("Bindings", ("bindings",)),
    ("Consumers", ("consumers",)),
    ("Log", ("log",)),
)


@verb
def alarms(session: VerbSession) -> None:
    """List the alarms of memory and disk space."""
    node = session.node()
    session.output.announce(f"Asking node {node} to report any known resource alarms ...")
    found = list(alarm_lines(session.api.get("nodes", node)))
    if session.output.formatter == "json":
        session.output.value({"alarms": [*found], "global": [*found], "local": [*found], "node": node})
    elif found:
        session.output.text("\n".join(found))
    else:
        session.output.text(f"Node {node} reported no alarms, local or clusterwide")


@verb
def is_running(session: VerbSession) -> None:
    """Print whether the broker is fully started."""
    try:
        node = session.node()
    except CommandFailed as error:
        raise Declined(f"the broker is not running: {error}") from None
    session.output.announce(f"Asking node {node} for its status ...")
    session.output.conclude(f"The broker on node {node} is fully booted and running")


@verb
def is_booting(session: VerbSession) -> None:
    """Print whether the broker is still recovering its data."""
    url = session.api.address.url
    session.output.announce(f"Asking {url} for its boot status ...")
    try:
        session.api.get("whoami")
    except StillStarting as error:
        session.output.conclude(f"The broker at {url} is booting: {error}")
        return
    session.output.conclude(f"The broker at {url} is fully booted (check with is_running)")


@verb
def node_health_check(session: VerbSession) -> None:
    """Check the alarms; deprecated by RabbitMQ. Use check_running, check_local_alarms, check_virtual_hosts."""
    session.output.announce(f"Checking health of node {session.node()} ...")
    session.api.get("healthchecks", "node")
    session.output.conclude("Health check passed")


@verb
def list_unresponsive_queues(session: VerbSession) -> None:
    """List queues that do not respond: none, as a queue is no process of its own."""
    session.output.announce(f"Listing unresponsive queues for vhost {session.vhost} ...")
    session.require_vhost()
    session.output.rows(("name",), [])


@verb
def reset_node_auth_attempt_metrics(session: VerbSession) -> None:
    """Set the numbers of logins to zero."""
    node = session.node()
    session.output.announce(f"Reset auth attempt metrics on node {node} ...")
    session.api.delete("auth", "attempts", node)


@verb
def report(session: VerbSession) -> None:
    """Print everything that support needs, as JSON by section. Passwords are not in it; names and addresses are."""
    session.output.announce(f"Reporting server status of node {session.node()} ...")
    for title, path in _REPORT:
        session.output.text(click.style(title, bold=True))
        try:
            with session.progress.during(title):
                found = session.api.get(*path)
        except Declined as error:
            session.output.text(f"(not available: {error})\n")
            continue
        for each in found if isinstance(found, list) else [found]:
            session.output.text(compact(each))
        session.output.text("")


@verb
def erlang_version(session: VerbSession) -> None:
    """Print the version of Erlang that tools are told: there is no Erlang runtime."""
    overview = session.api.get("overview")
    session.output.announce(f"Asking node {text(overview, 'node')} for its Erlang/OTP version...")
    session.output.text(f"{part(overview, 'erlang_version')}, for tools that ask; the broker does not use Erlang")


VERBS = (
    alarms,
    is_running,
    is_booting,
    node_health_check,
    list_unresponsive_queues,
    reset_node_auth_attempt_metrics,
    report,
    erlang_version,
    message_size_stats,
)
