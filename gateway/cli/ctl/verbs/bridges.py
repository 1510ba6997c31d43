"""Verbs for shovels and federation links."""

import click

from gateway.cli.ctl.errors import Declined
from gateway.cli.ctl.listing import NounListing, columns_argument, print_listing
from gateway.cli.ctl.session import VerbSession
from gateway.cli.ctl.values import text
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
        "address": "address",
        "termination_reason": "reason",
        "last_changed": "timestamp",
        "forwarded": "forwarded",
        "pending": "pending",
        "remaining": "remaining",
        "blocked_status": "blocked_status",
    },
    defaults=(
        *("name", "vhost", "type", "state", "source_uri", "destination_uri", "address", "termination_reason"),
        "last_changed",
    ),
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


LINKS = NounListing(
    path=("federation-links",),
    columns={
        name: name
        for name in (
            "id", "vhost", "type", "exchange", "queue", "upstream", "upstream_exchange", "upstream_queue", "status",
            "uri", "error", "timestamp", "forwarded", "pending",
        )
    },
    defaults=("id", "vhost", "type", "exchange", "queue", "upstream", "status", "uri", "error"),
    banner="Listing federation links ...",
)  # fmt: skip


@verb
@columns_argument
@click.option("--only-down", is_flag=True, help="Only links that are not running.")
def federation_status(session: VerbSession, columns: tuple[str, ...], only_down: bool) -> None:
    """Show the state of the federation links of all virtual hosts."""
    print_listing(
        session,
        LINKS,
        columns,
        predicate=lambda link: not only_down or text(link, "status") != "running",
        extra_fields=("status",),
    )


@verb
@click.argument("id")
def restart_federation_link(session: VerbSession, id: str) -> None:
    """Close the connections of a federation link and open them again."""
    session.output.announce(f"Restarting federation link {id} ...")
    found = [link for link in session.api.list("federation-links") if text(link, "id") == id]
    if not found:
        raise Declined(f"Link with the given ID was not found: {id}")
    (link,) = found
    session.api.delete("federation-links", "vhost", text(link, "vhost"), id, text(link, "node"), "restart")


VERBS = (shovel_status, delete_shovel, restart_shovel, federation_status, restart_federation_link)
