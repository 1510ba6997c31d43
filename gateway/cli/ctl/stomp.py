"""The verb of STOMP: its connections."""

import click

from gateway.cli.ctl.connections import CONNECTIONS
from gateway.cli.ctl.listing import ListedNoun, columns_argument, listed
from gateway.cli.ctl.session import VerbSession
from gateway.cli.ctl.values import text
from gateway.cli.ctl.verb import verb

STOMP_CONNECTIONS = ListedNoun(
    path=CONNECTIONS.path,
    columns={
        **CONNECTIONS.columns,
        "session_id": "client_properties.session",
        # As with list_connections, what RabbitMQ shows as a process is a name here.
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
@click.option("-V", "--verbose", is_flag=True, help="With all columns.")
def list_stomp_connections(session: VerbSession, columns: tuple[str, ...], verbose: bool) -> None:
    """List the STOMP connections of all virtual hosts, those over WebSocket among them."""
    listed(
        session,
        STOMP_CONNECTIONS,
        tuple(STOMP_CONNECTIONS.columns) if verbose else columns,
        keeps=lambda found: "STOMP" in text(found, "protocol"),
        needs=["protocol"],
    )


VERBS = (list_stomp_connections,)
