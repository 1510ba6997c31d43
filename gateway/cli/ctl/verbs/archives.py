"""Verbs for archives and the trace table."""

import click

from gateway.cli.ctl.listing import NounListing, columns_argument, print_listing
from gateway.cli.ctl.session import VerbSession
from gateway.cli.ctl.verb import verb
from gateway.cli.ctl.verbs.vhosts import change_vhost

ARCHIVES = NounListing(
    path=("archives",),
    columns={
        name: name
        for name in (
            "source", "name", "table", "state", "messages", "message_bytes", "next_offset", "filed_offset",
            "waiting_segments", "waiting_bytes", "lag_ms", "held_back", "dropped", "failure",
        )
    },
    defaults=("source", "name", "state", "messages", "waiting_bytes", "lag_ms"),
    banner="Listing archives for vhost {vhost} ...",
    is_in_vhost=True,
)  # fmt: skip


@verb
@columns_argument
def list_archives(session: VerbSession, columns: tuple[str, ...]) -> None:
    """List the archives of a virtual host and their lag."""
    print_listing(session, ARCHIVES, columns)


@verb
@click.argument("state", type=click.Choice(["on", "off"]))
def trace_table(session: VerbSession, state: str) -> None:
    """Turn the trace table of a virtual host on or off; it records the events of messages."""
    word = "Starting" if state == "on" else "Stopping"
    session.output.announce(f'{word} the trace table of vhost "{session.vhost}" ...')
    change_vhost(session, session.vhost, {"trace_table": state == "on"})


VERBS = (list_archives, trace_table)
