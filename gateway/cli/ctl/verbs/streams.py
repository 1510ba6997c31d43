"""Verbs for streams: those of rabbitmq-streams, and offset tracking."""

from typing import Final

import click

from gateway.cli.ctl.errors import WrongUsage
from gateway.cli.ctl.listing import NounListing, columns_argument, print_listing
from gateway.cli.ctl.session import VerbSession
from gateway.cli.ctl.values import JsonObject, number, part, text
from gateway.cli.ctl.verb import verb

CONSUMERS = NounListing(
    path=("stream", "consumers"),
    columns={
        # a name replaces RabbitMQ's process
        "connection_pid": "channel_details.connection_name",
        "credits": "credits",
        "messages_consumed": "consumed",
        "offset": "offset",
        "offset_lag": "offset_lag",
        "properties": "properties",
        "stream": "queue.name",
        "subscription_id": "subscription_id",
    },
    defaults=("connection_pid", "stream", "subscription_id", "credits", "messages_consumed", "offset", "offset_lag"),
    banner="Listing stream consumers ...",
    is_in_vhost=True,
)

#: Publishers and connections of RabbitMQ's stream protocol, which is not supported: these listings are empty.
PUBLISHERS = NounListing(
    path=("stream", "publishers"),
    columns={name: name for name in ("connection_pid", "publisher_id", "reference", "stream")}
    | {name: name for name in ("messages_published", "messages_confirmed", "messages_errored")},
    defaults=("connection_pid", "stream", "publisher_id", "reference"),
    banner="Listing stream publishers ...",
    is_in_vhost=True,
)
CONNECTIONS = NounListing(
    path=("stream", "connections"),
    columns={name: name for name in ("conn_name", "host", "peer_host", "peer_port", "port", "user", "vhost")},
    defaults=("conn_name",),
    banner="Listing stream connections ...",
)

STATUS_COLUMNS: Final = ("role", "node", "offset", "committed_offset", "first_offset", "readers", "segments")
TRACKING_COLUMNS: Final = ("type", "reference", "value", "lag")


@verb
@click.argument("stream")
@click.option("--tracking", is_flag=True, help="Show the stored offsets of consumers instead.")
def stream_status(session: VerbSession, stream: str, tracking: bool) -> None:
    """Show the offsets and the readers of a stream."""
    if tracking:
        session.output.announce(f"Tracking of stream {stream} in vhost {session.vhost} ...")
        _print_tracking(session, stream)
        return
    session.output.announce(f"Status of stream {stream} on node {session.node()} ...")
    with session.reporting_missing(f"stream '{stream}'"):
        found = session.api.get("queues", session.vhost, stream)
    if text(found, "type") != "stream":
        raise WrongUsage(f"queue '{stream}' is not a stream")
    next_offset = number(found, "next_offset")
    row: JsonObject = {
        "role": "writer",
        "node": text(found, "node"),
        "offset": next_offset - 1,
        "committed_offset": next_offset - 1,
        "first_offset": number(found, "first_offset"),
        "readers": number(found, "consumers"),
        "segments": number(found, "segments"),
    }
    session.output.rows(STATUS_COLUMNS, [row])


@verb
@click.argument("stream")
def list_stream_tracking(session: VerbSession, stream: str) -> None:
    """List the stored offsets of a stream's consumers and their lag."""
    session.output.announce(f"Listing tracking information for stream {stream} ...")
    _print_tracking(session, stream)


@verb
@click.argument("stream")
@click.argument("consumer")
@click.argument("offset", type=click.IntRange(min=0))
def set_stream_offset(session: VerbSession, stream: str, consumer: str, offset: int) -> None:
    """Store an offset for a consumer, which resumes after it; rabbitmqctl has no such verb."""
    session.output.announce(f"Setting the offset of consumer '{consumer}' of stream '{stream}' to {offset} ...")
    with session.reporting_missing(f"stream '{stream}'"):
        session.api.put("stream", session.vhost, stream, "tracking", consumer, body={"offset": offset})


@verb
@click.argument("stream")
@click.argument("consumer")
def delete_stream_offset(session: VerbSession, stream: str, consumer: str) -> None:
    """Delete the stored offset of a consumer; rabbitmqctl has no such verb."""
    session.output.announce(f"Deleting the offset of consumer '{consumer}' of stream '{stream}' ...")
    with session.reporting_missing(f"consumer '{consumer}' of stream '{stream}'"):
        session.api.delete("stream", session.vhost, stream, "tracking", consumer)


@verb
@columns_argument
def list_stream_consumers(session: VerbSession, columns: tuple[str, ...]) -> None:
    """List the stream consumers of a virtual host."""
    print_listing(session, CONSUMERS, columns)


@verb
@columns_argument
def list_stream_publishers(session: VerbSession, columns: tuple[str, ...]) -> None:
    """List the publishers of RabbitMQ's stream protocol: none, it is not supported."""
    print_listing(session, PUBLISHERS, columns)


@verb
@columns_argument
def list_stream_connections(session: VerbSession, columns: tuple[str, ...]) -> None:
    """List the connections of RabbitMQ's stream protocol: none, it is not supported."""
    print_listing(session, CONNECTIONS, columns)


@verb
def list_stream_consumer_groups(session: VerbSession) -> None:
    """List the groups of single active consumers of RabbitMQ's stream protocol: none, it is not supported."""
    session.output.announce("Listing stream consumer groups ...")
    session.require_vhost()
    session.output.rows(("stream", "reference", "partition_index", "consumers"), [])


@verb
@click.option("--stream", required=True, help="The stream of the group.")
@click.option("--reference", required=True, help="The name of the group.")
def list_stream_group_consumers(session: VerbSession, stream: str, reference: str) -> None:
    """List the consumers of a group of RabbitMQ's stream protocol: none, it is not supported."""
    session.output.announce(f"Listing consumers for group {reference}, stream {stream} ...")
    session.require_vhost()
    session.output.rows(("subscription_id", "connection_name", "state"), [])


def _print_tracking(session: VerbSession, stream: str) -> None:
    with session.reporting_missing(f"stream '{stream}'"):
        found = session.api.get("stream", session.vhost, stream, "tracking")
    offsets = part(found, "offsets")
    names = sorted(offsets) if isinstance(offsets, dict) else []
    rows: list[JsonObject] = [
        {
            "type": "offset",
            "reference": name,
            "value": part(found, "offsets", name),
            "lag": part(found, "lags", name),
        }
        for name in names
    ]
    session.output.rows(TRACKING_COLUMNS, rows)


VERBS = (
    stream_status,
    list_stream_tracking,
    set_stream_offset,
    delete_stream_offset,
    list_stream_consumers,
    list_stream_publishers,
    list_stream_connections,
    list_stream_consumer_groups,
    list_stream_group_consumers,
)
