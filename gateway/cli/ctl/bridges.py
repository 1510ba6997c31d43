"""Verbs for shovels."""

import click

from gateway.cli.ctl.listing import NounListing, columns_argument, print_listing
from gateway.cli.ctl.session import VerbSession
from gateway.cli.ctl.verb import verb

SHOVELS = NounListing(
    path=("shovels",),
    columns={
        "name": "name",
        "vhost": "vhost",
        "type": "type",
        "state": "state",
        "source": "src_queue",
        "source_exchange": "src_exchange",
        "source_uri": "src_uri",
        "source_protocol": "src_protocol",
        "destination": "dest_queue",
        "destination_exchange": "dest_exchange",
        "destination_uri": "dest_uri",
        "destination_protocol": "dest_protocol",
        "termination_reason": "reason",
        "last_changed": "timestamp",
        "forwarded": "forwarded",
        "pending": "pending",
        "remaining": "remaining",
        "blocked_status": "blocked_status",
    },
    defaults=("name", "vhost", "state", "source_uri", "destination_uri", "termination_reason", "last_changed"),
    banner="Shovel status ...",
)


@verb
@columns_argument
def shovel_status(session: VerbSession, columns: tuple[str, ...]) -> None:
    """Show the state of the shovels of all virtual hosts."""
    print_listing(session, SHOVELS, columns)


@verb
@click.argument("name")
def delete_shovel(session: VerbSession, name: str) -> None:
    """Delete a shovel with its parameter."""
    session.output.announce(f"Deleting shovel {name} in vhost {session.vhost} ...")
    with session.reporting_missing(f"shovel '{name}'"):
        session.api.delete("shovels", "vhost", session.vhost, name)


@verb
@click.argument("name")
def restart_shovel(session: VerbSession, name: str) -> None:
    """Close the connections of a shovel and open them again."""
    session.output.announce(f"Restarting shovel {name} in vhost {session.vhost} ...")
    with session.reporting_missing(f"shovel '{name}'"):
        session.api.delete("shovels", "vhost", session.vhost, name, "restart")


VERBS = (shovel_status, delete_shovel, restart_shovel)
