"""Verbs for MQTT connections, over TCP and over WebSocket."""

from dataclasses import replace

import click

from gateway.cli.ctl.listing import NounListing, columns_argument, print_listing
from gateway.cli.ctl.session import VerbSession
from gateway.cli.ctl.values import text
from gateway.cli.ctl.verb import verb
from gateway.cli.ctl.verbs.connections import CONNECTIONS

MQTT_CONNECTIONS = NounListing(
    path=CONNECTIONS.path,
    columns={
        **CONNECTIONS.columns,
        "client_id": "variable_map.client_id",
        # As in list_connections, a name replaces RabbitMQ's process.
        "conn_name": "name",
        "connection": "name",
        "connection_state": "state",
        "keepalive": "timeout",
    },
    defaults=("client_id", "conn_name"),
    banner="Listing MQTT connections ...",
)

WEB_MQTT_CONNECTIONS = replace(MQTT_CONNECTIONS, banner="Listing Web MQTT connections ...")

_verbose = click.option("-V", "--verbose", is_flag=True, help="Show all columns.")


@verb
@columns_argument
@_verbose
def list_mqtt_connections(session: VerbSession, columns: tuple[str, ...], verbose: bool) -> None:
    """List the MQTT connections of all virtual hosts, except those over WebSocket."""
    _list(session, MQTT_CONNECTIONS, "MQTT", columns, verbose)


@verb
@columns_argument
@_verbose
def list_web_mqtt_connections(session: VerbSession, columns: tuple[str, ...], verbose: bool) -> None:
    """List the MQTT connections over WebSocket of all virtual hosts."""
    _list(session, WEB_MQTT_CONNECTIONS, "Web MQTT", columns, verbose)


def _list(session: VerbSession, listing: NounListing, protocol: str, columns: tuple[str, ...], verbose: bool) -> None:
    """List the connections of a protocol; its version follows its name."""
    wanted = tuple(listing.columns) if verbose else columns
    print_listing(
        session,
        listing,
        wanted,
        predicate=lambda found: text(found, "protocol").startswith(f"{protocol} "),
        extra_fields=["protocol"],
    )


VERBS = (list_mqtt_connections, list_web_mqtt_connections)
