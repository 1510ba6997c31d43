"""Verbs for health checks. The exit code is 69 if a check fails."""

import socket
import time
from typing import Final

import click

from gateway.cli.ctl.checks import Check
from gateway.cli.ctl.errors import BrokerUnreachable, Declined, NotPermitted, Unhealthy
from gateway.cli.ctl.listeners import Listener, listeners_of
from gateway.cli.ctl.session import VerbSession
from gateway.cli.ctl.values import part, text
from gateway.cli.ctl.verb import DEFAULT_TIMEOUT_S, verb

STARTUP_TIMEOUT_S: Final = 300.0
RETRY_S: Final = 0.5
CONNECT_TIMEOUT_S: Final = 5.0


@verb
def ping(session: VerbSession) -> None:
    """Check that the broker's management API answers and accepts the credentials."""
    timeout_ms = (DEFAULT_TIMEOUT_S if session.timeout_s is None else session.timeout_s) * 1000
    session.output.announce(
        f"Will ping {session.api.address.url}. This only checks that the management API answers and accepts the user. "
        f"Timeout: {timeout_ms:.0f} ms."
    )
    session.api.get("whoami")
    session.output.conclude("Ping succeeded")


@verb
def await_startup(session: VerbSession) -> None:
    """Wait until the broker is running: five minutes at most, or --timeout."""
    timeout_s = STARTUP_TIMEOUT_S if session.timeout_s is None else session.timeout_s
    deadline = time.monotonic() + timeout_s
    with session.progress.during(f"waiting for {session.api.address.url}"):
        while True:
            try:
                session.api.get("whoami")
                return
            except NotPermitted:
                raise
            except (BrokerUnreachable, Declined) as error:
                if time.monotonic() + RETRY_S > deadline:
                    raise
                session.progress.say(str(error))
                time.sleep(RETRY_S)


@verb
def check_running(session: VerbSession) -> None:
    """Check that the broker is running, and that its cluster works, if it is in one."""
    node = session.node()
    session.output.announce(f"Checking if the broker is running on node {node} ...")
    found = session.api.get("nodes", node)
    if part(found, "running") is not True:
        raise Declined(f"the broker on node {node} is not running")
    if doubt := text(found, "doubt"):
        raise Declined(f"the broker on node {node} cannot be relied on: {doubt}")
    session.output.conclude(f"The broker on node {node} is fully booted and running")


@verb
def check_local_alarms(session: VerbSession) -> None:
    """Check that no memory or disk alarm is set on the node."""
    Check(
        "local-alarms",
        question="Asking node {node} to report any local resource alarms ...",
        answer="Node {node} reported no local alarms",
    ).run(session)


@verb
def check_alarms(session: VerbSession) -> None:
    """Check that no memory or disk alarm is set anywhere."""
    Check(
        "alarms",
        question="Asking node {node} to report any resource alarms ...",
        answer="Node {node} reported no alarms, local or clusterwide",
    ).run(session)


@verb
@click.argument("port", type=click.IntRange(0, 65535))
def check_port_listener(session: VerbSession, port: int) -> None:
    """Check that the broker listens on PORT."""
    check = Check(
        *("port-listener", str(port)),
        question=f"Asking node {{node}} if there's an active listener on port {port} ...",
        answer=f"A listener for port {port} is running on node {{node}}.",
    )
    _check_listener(session, check, f"port {port}", "that use the following ports", "ports")


@verb
@click.argument("protocol")
def check_protocol_listener(session: VerbSession, protocol: str) -> None:
    """Check that the broker listens for PROTOCOL: amqp, amqps, http, ..."""
    check = Check(
        *("protocol-listener", protocol),
        question=f"Asking node {{node}} if there's an active listener for protocol {protocol} ...",
        answer=f"A listener for protocol {protocol} is running on node {{node}}.",
    )
    _check_listener(session, check, f"protocol {protocol}", "for the following protocols", "protocols")


def _check_listener(session: VerbSession, check: Check, wanted: str, found: str, field: str) -> None:
    """Run a check for a listener; a failure names the listeners that exist, from a field of the answer."""
    try:
        check.run(session)
    except Unhealthy as error:
        raise Declined(
            f"No listener for {wanted} is active on node {session.node()}. "
            f"Found listeners {found}: {_joined(error.finding.get(field))}"
        ) from None


@verb
@click.option("--address", help="Connect to this host instead of the listeners' addresses.")
def check_port_connectivity(session: VerbSession, address: str | None) -> None:
    """Connect to every listener of the broker from this machine."""
    overview = session.api.get("overview")
    node, found = text(overview, "node"), listeners_of(overview)
    session.output.announce(f"Testing TCP connections to all active listeners on node {node} ...")
    closed = [
        listener.port for listener in found if not _accepts_connections(listener, address or session.api.address.host)
    ]
    if closed:
        raise Declined(f"Connection to ports {_joined(closed)} of node {node} failed")
    ports = _joined([listener.port for listener in found])
    session.output.conclude(f"Successfully connected to ports {ports} on node {node}.")


@verb
def check_virtual_hosts(session: VerbSession) -> None:
    """Check that all virtual hosts are running."""
    Check(
        "virtual-hosts",
        question="Checking if all vhosts are running on node {node} ...",
        answer="Node {node} reported all vhosts as running",
    ).run(session)


@verb
@click.option("--within", type=click.IntRange(min=0), default=4, show_default=True, help="Number of units.")
@click.option("--unit", type=click.Choice(["days", "weeks", "months", "years"]), default="weeks", show_default=True)
def check_certificate_expiration(session: VerbSession, within: int, unit: str) -> None:
    """Check that no certificate of the broker expires soon."""
    check = Check(
        *("certificate-expiration", str(within), unit),
        question="Checking certificate expiration on node {node} ...",
        answer=f"No certificates are expiring within {within} {unit}.",
    )
    try:
        check.run(session)
    except Unhealthy as error:
        expired = error.finding.get("expired")
        named = [f"{each['subject']} at {each['not_after']}" for each in expired] if isinstance(expired, list) else []
        raise Declined(f"{error}: {'; '.join(named)}" if named else str(error)) from None


def _accepts_connections(listener: Listener, host: str) -> bool:
    """Return whether a connection can be opened, to ``host`` if the listener is bound to all addresses."""
    target = host if listener.is_wildcard else listener.interface
    try:
        socket.create_connection((target, listener.port), CONNECT_TIMEOUT_S).close()
    except OSError:
        return False
    return True


def _joined(values: object) -> str:
    return ", ".join(map(str, sorted(set(values)))) if isinstance(values, list) else ""


VERBS = (
    ping,
    await_startup,
    check_running,
    check_local_alarms,
    check_alarms,
    check_port_listener,
    check_protocol_listener,
    check_port_connectivity,
    check_virtual_hosts,
    check_certificate_expiration,
)
