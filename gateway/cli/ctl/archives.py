"""The verbs of archives and of the table of events."""

import click

from gateway.cli.ctl.listing import ListedNoun, columns_argument, listed
from gateway.cli.ctl.session import VerbSession
from gateway.cli.ctl.verb import verb
from gateway.cli.ctl.vhosts import change_vhost

ARCHIVES = ListedNoun(
    path=("archives",),
    columns={
        name: name
        for name in (
            "source", "name", "state", "messages", "message_bytes", "next_offset", "filed_offset", "waiting_segments",
            "waiting_bytes", "lag_ms", "held_back", "dropped",
        )
    },
    defaults=("source", "name", "state", "messages", "waiting_bytes", "lag_ms"),
    banner="Listing archives for vhost {vhost} ...",
    is_in_vhost=True,
)  # fmt: skip


@verb
@columns_argument
def list_archives(session: VerbSession, columns: tuple[str, ...]) -> None:
    """List what is kept for good in a virtual host, and how far it is behind."""
    listed(session, ARCHIVES, columns)


@verb
@click.argument("state", type=click.Choice(["on", "off"]))
def trace_table(session: VerbSession, state: str) -> None:
    """Write what happens to messages of a virtual host into its table of events, or no more."""
    word = "Starting" if state == "on" else "Stopping"
    session.output.announce(f'{word} the trace table of vhost "{session.vhost}" ...')
    change_vhost(session, session.vhost, {"trace_table": state == "on"})


VERBS = (list_archives, trace_table)
