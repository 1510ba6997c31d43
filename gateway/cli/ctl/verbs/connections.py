"""Verbs for connections, channels and consumers."""

import time
from collections.abc import Callable

import click

from gateway.cli.ctl.errors import Declined, UnknownEntity
from gateway.cli.ctl.listing import NounListing, columns_argument, print_listing
from gateway.cli.ctl.session import VerbSession
from gateway.cli.ctl.values import JsonObject, text
from gateway.cli.ctl.verb import verb

OF_CONNECTION = (
    *("name", "user", "vhost", "node", "state", "protocol", "auth_mechanism", "connected_at", "client_properties"),
    *("host", "port", "peer_host", "peer_port", "timeout", "frame_max", "channel_max", "channels", "type"),
    *("recv_oct", "recv_cnt", "send_oct", "send_cnt", "send_pend"),
    *("ssl", "ssl_protocol", "ssl_key_exchange", "ssl_cipher", "ssl_hash"),
    *("peer_cert_subject", "peer_cert_issuer", "peer_cert_validity"),
)

CONNECTIONS = NounListing(
    path=("connections",),
    # RabbitMQ shows a process here; this is a name, which close_connection accepts.
    columns={**{name: name for name in OF_CONNECTION}, "pid": "name"},
    defaults=("user", "peer_host", "peer_port", "state"),
    banner="Listing connections ...",
)

OF_CHANNEL = (
    *("name", "number", "user", "vhost", "node", "state", "transactional", "confirm", "consumer_count"),
    *("messages_unacknowledged", "messages_uncommitted", "messages_unconfirmed", "acks_uncommitted"),
    *("prefetch_count", "global_prefetch_count", "idle_since"),
)

CHANNELS = NounListing(
    path=("channels",),
    columns={**{name: name for name in OF_CHANNEL}, "pid": "name", "connection": "connection_details.name"},
    defaults=("pid", "user", "consumer_count", "messages_unacknowledged"),
    banner="Listing channels ...",
)

CONSUMERS = NounListing(
    path=("consumers",),
    columns={
        "queue_name": "queue.name",
        "channel_pid": "channel_details.name",
        "consumer_tag": "consumer_tag",
        "ack_required": "ack_required",
        "exclusive": "exclusive",
        "prefetch_count": "prefetch_count",
        "active": "active",
        "activity_status": "activity_status",
        "arguments": "arguments",
        "vhost": "queue.vhost",
    },
    defaults=("queue_name", "channel_pid", "consumer_tag", "ack_required", "prefetch_count", "active", "arguments"),
    banner="Listing consumers in vhost {vhost} ...",
    is_in_vhost=True,
)


@verb
@columns_argument
def list_connections(session: VerbSession, columns: tuple[str, ...]) -> None:
    """List the connections of all virtual hosts."""
    print_listing(session, CONNECTIONS, columns)


@verb
@columns_argument
def list_channels(session: VerbSession, columns: tuple[str, ...]) -> None:
    """List the channels of all virtual hosts."""
    print_listing(session, CHANNELS, columns)


@verb
@columns_argument
def list_consumers(session: VerbSession, columns: tuple[str, ...]) -> None:
    """List the consumers of a virtual host."""
    print_listing(session, CONSUMERS, columns)


_limit = click.option("--limit", type=click.IntRange(min=0), default=0, help="Maximum number to close; 0 is all.")
_delay = click.option(
    "--per-connection-delay",
    "delay_ms",
    type=click.IntRange(min=0),
    default=0,
    help="Delay after each, in milliseconds.",
)


@verb
@click.argument("name")
@click.argument("reason")
def close_connection(session: VerbSession, name: str, reason: str) -> None:
    """Close the connection with this name or pid, and send its client the REASON."""
    session.output.announce(f"Closing connection {name}, reason: {reason}...")
    with session.on_not_found(Declined(f"connection '{name}' does not exist")):
        session.api.delete("connections", name, reason=reason)


@verb
@click.argument("reason")
@click.option("--global", "in_all", is_flag=True, help="Close those of all virtual hosts.")
@_limit
@_delay
def close_all_connections(session: VerbSession, reason: str, in_all: bool, limit: int, delay_ms: int) -> None:
    """Close the connections of a virtual host, or of all, and send their clients the REASON."""
    scope = f"to node {session.node()} (across all vhosts)" if in_all else f"in vhost {session.vhost}"
    session.output.announce(f"Closing all connections {scope}, reason: {reason}...")
    closed = _close(session, lambda found: in_all or text(found, "vhost") == session.vhost, reason, limit, delay_ms)
    session.output.conclude(f"Closed {closed} connections")


@verb
@click.argument("user")
@click.argument("reason")
@_limit
@_delay
def close_all_user_connections(session: VerbSession, user: str, reason: str, limit: int, delay_ms: int) -> None:
    """Close the connections of USER, and send their clients the REASON."""
    session.output.announce(f"Closing connections of user {user}, reason: {reason}...")
    _close(session, lambda found: text(found, "user") == user, reason, limit, delay_ms)


def _close(
    session: VerbSession, predicate: Callable[[JsonObject], bool], reason: str, limit: int, delay_ms: int
) -> int:
    """Close the connections that match; return their number, without those that closed before."""
    names = [text(found, "name") for found in session.api.list("connections") if predicate(found)]
    closed = 0
    chosen = names[: limit or None]
    with session.progress.during("closing connections"):
        for number, name in enumerate(chosen, 1):
            session.progress.say(f"closing connection {number} of {len(chosen)}")
            try:
                session.api.delete("connections", name, reason=reason)
            except UnknownEntity:
                continue
            closed += 1
            time.sleep(delay_ms / 1000)
    return closed


VERBS = (
    list_connections,
    list_channels,
    list_consumers,
    close_connection,
    close_all_connections,
    close_all_user_connections,
)
