"""The verbs of streams: those of rabbitmq-streams, and how far consumers got."""

from typing import Final

import click

from gateway.cli.ctl.errors import WrongUsage
from gateway.cli.ctl.listing import ListedNoun, columns_argument, listed
from gateway.cli.ctl.session import VerbSession
from gateway.cli.ctl.values import JsonObject, number, part, text
from gateway.cli.ctl.verb import verb

CONSUMERS = ListedNoun(
    path=("stream", "consumers"),
    columns={
        # what RabbitMQ shows as a process is a name here
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

#: Clients of RabbitMQ's stream protocol, and what they declare; there is a listing of them, and nobody in it.
PUBLISHERS = ListedNoun(
    path=("stream", "publishers"),
    columns={name: name for name in ("connection_pid", "publisher_id", "reference", "stream")}
    | {name: name for name in ("messages_published", "messages_confirmed", "messages_errored")},
    defaults=("connection_pid", "stream", "publisher_id", "reference"),
    banner="Listing stream publishers ...",
    is_in_vhost=True,
)
CONNECTIONS = ListedNoun(
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
    """Show how far a stream reaches, and who reads it."""
    if tracking:
        session.output.announce(f"Tracking of stream {stream} in vhost {session.vhost} ...")
        _print_tracking(session, stream)
        return
    session.output.announce(f"Status of stream {stream} on node {session.node()} ...")
    with session.naming(f"stream '{stream}'"):
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
    """List the stored offsets of a stream's consumers, and how many messages they have yet to see."""
    session.output.announce(f"Listing tracking information for stream {stream} ...")
    _print_tracking(session, stream)


@verb
@click.argument("stream")
@click.argument("consumer")
@click.argument("offset", type=click.IntRange(min=0))
def set_stream_offset(session: VerbSession, stream: str, consumer: str, offset: int) -> None:
    """Store an offset for a consumer, who goes on behind it; rabbitmqctl has no such verb."""
    session.output.announce(f"Setting the offset of consumer '{consumer}' of stream '{stream}' to {offset} ...")
    with session.naming(f"stream '{stream}'"):
        session.api.put("stream", session.vhost, stream, "tracking", consumer, body={"offset": offset})


@verb
@click.argument("stream")
@click.argument("consumer")
def delete_stream_offset(session: VerbSession, stream: str, consumer: str) -> None:
    """Forget the stored offset of a consumer; rabbitmqctl has no such verb."""
    session.output.announce(f"Deleting the offset of consumer '{consumer}' of stream '{stream}' ...")
    with session.naming(f"consumer '{consumer}' of stream '{stream}'"):
        session.api.delete("stream", session.vhost, stream, "tracking", consumer)


@verb
@columns_argument
def list_stream_consumers(session: VerbSession, columns: tuple[str, ...]) -> None:
    """List the consumers of streams of a virtual host."""
    listed(session, CONSUMERS, columns)


@verb
@columns_argument
def list_stream_publishers(session: VerbSession, columns: tuple[str, ...]) -> None:
    """List who publishes by RabbitMQ's stream protocol: nobody, it is not spoken."""
    listed(session, PUBLISHERS, columns)


@verb
@columns_argument
def list_stream_connections(session: VerbSession, columns: tuple[str, ...]) -> None:
    """List the connections of RabbitMQ's stream protocol: none, it is not spoken."""
    listed(session, CONNECTIONS, columns)


def _print_tracking(session: VerbSession, stream: str) -> None:
    with session.naming(f"stream '{stream}'"):
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
)
