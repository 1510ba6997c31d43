"""Verbs for STOMP connections."""

import click

from gateway.cli.ctl.listing import NounListing, columns_argument, print_listing
from gateway.cli.ctl.session import VerbSession
from gateway.cli.ctl.values import text
from gateway.cli.ctl.verb import verb
from gateway.cli.ctl.verbs.connections import CONNECTIONS

STOMP_CONNECTIONS = NounListing(
    path=CONNECTIONS.path,
    columns={
        **CONNECTIONS.columns,
        "session_id": "client_properties.session",
        # As in list_connections, a name replaces RabbitMQ's process.
        "conn_name": "name",
        "connection": "name",
        "connection_state": "state",
        "auth_login": "user",
    },
    defaults=("session_id", "conn_name"),
    banner="Listing STOMP connections ...",
)


@verb
@columns_argument
@click.option("-V", "--verbose", is_flag=True, help="Show all columns.")
def list_stomp_connections(session: VerbSession, columns: tuple[str, ...], verbose: bool) -> None:
    """List the STOMP connections of all virtual hosts, including those over WebSocket."""
    print_listing(
        session,
        STOMP_CONNECTIONS,
        tuple(STOMP_CONNECTIONS.columns) if verbose else columns,
        predicate=lambda found: "STOMP" in text(found, "protocol"),
        extra_fields=["protocol"],
    )


VERBS = (list_stomp_connections,)
