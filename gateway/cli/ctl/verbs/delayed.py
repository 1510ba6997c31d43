"""Verbs for delayed messages of queues and exchanges, which rabbitmqctl does not have."""

import click

from gateway.cli.ctl.errors import WrongUsage
from gateway.cli.ctl.listing import NounListing
from gateway.cli.ctl.paged import first_rows
from gateway.cli.ctl.session import VerbSession
from gateway.cli.ctl.verb import verb

_SAME_NAME = (
    *("position", "due_at", "due_at_ms", "exchange", "routing_key"),
    *("payload", "payload_encoding", "payload_bytes", "properties"),
)

DELAYED = NounListing(
    path=(),
    columns={name: name for name in _SAME_NAME},
    defaults=("position", "due_at", "exchange", "routing_key", "payload_bytes"),
    banner="Listing delayed messages of {kind} {name} in vhost {vhost} ...",
)

of_exchange = click.option("--exchange", "is_exchange", is_flag=True, help="NAME is an exchange.")


@verb
@click.argument("name")
@click.argument("columns", nargs=-1)
@of_exchange
@click.option(
    "--limit", type=click.IntRange(min=1), default=100, help="Maximum number to list, the earliest first. [100]"
)
def list_delayed_messages(
    session: VerbSession, name: str, columns: tuple[str, ...], is_exchange: bool, limit: int
) -> None:
    """List the delayed messages of a queue or an exchange."""
    chosen = DELAYED.chosen(columns)
    kind = "exchange" if is_exchange else "queue"
    session.output.announce(DELAYED.banner.format(kind=kind, name=f"'{name}'", vhost=session.vhost))
    with session.reporting_missing(f"{kind} '{name}'"):
        found = first_rows(session, (f"{kind}s", session.vhost, name, "delayed"), limit)
    session.output.rows(chosen, [DELAYED.row(each, chosen) for each in found])


@verb
@click.argument("name")
@click.argument("positions", nargs=-1, type=int)
@of_exchange
@click.option("--all", "is_all", is_flag=True, help="Cancel all delayed messages.")
def cancel_delayed_messages(
    session: VerbSession, name: str, positions: tuple[int, ...], is_exchange: bool, is_all: bool
) -> None:
    """Delete delayed messages, by position or all of them."""
    if is_all == bool(positions):
        raise WrongUsage("give either positions or --all")
    kind = "exchange" if is_exchange else "queue"
    which = "all delayed messages" if is_all else f"{len(positions)} delayed message(s)"
    session.output.announce(f"Cancelling {which} of {kind} '{name}' in vhost '{session.vhost}' ...")
    path = (f"{kind}s", session.vhost, name, "delayed")
    if is_all:
        with session.reporting_missing(f"{kind} '{name}'"):
            session.api.delete(*path)
    for position in positions:
        with session.reporting_missing(f"a delayed message at {position} of {kind} '{name}'"):
            session.api.delete(*path, str(position))


VERBS = (list_delayed_messages, cancel_delayed_messages)
