"""Verbs for what exchanges and queues remember: kept messages, and windows of deduplication. rabbitmqctl has none."""

import click

from gateway.cli.ctl.errors import WrongUsage
from gateway.cli.ctl.listing import NounListing, columns_argument, print_listing
from gateway.cli.ctl.paged import first_rows
from gateway.cli.ctl.session import VerbSession
from gateway.cli.ctl.verb import verb
from gateway.cli.ctl.verbs.delayed import of_exchange

_COLUMNS = ("key", "exchange", "routing_key", "payload", "payload_encoding", "payload_bytes", "properties")

KEPT = NounListing(
    path=(),
    columns={name: name for name in _COLUMNS},
    defaults=("key", "routing_key", "payload_bytes", "payload"),
    banner="Listing kept messages of exchange {name} in vhost {vhost} ...",
)

WINDOWS = NounListing(
    path=("deduplication",),
    columns={name: name for name in ("kind", "name", "keys", "size", "ttl_ms", "durable")},
    defaults=("kind", "name", "keys", "size", "ttl_ms"),
    banner="Listing deduplication windows for vhost {vhost} ...",
    is_in_vhost=True,
)


@verb
@click.argument("exchange")
@columns_argument
@click.option(
    "--limit", type=click.IntRange(min=1), default=100, help="Maximum number to list, the oldest first. [100]"
)
def list_kept_messages(session: VerbSession, exchange: str, columns: tuple[str, ...], limit: int) -> None:
    """List the messages that an exchange keeps for new destinations."""
    chosen = KEPT.chosen(columns)
    session.output.announce(KEPT.banner.format(name=f"'{exchange}'", vhost=session.vhost))
    with session.reporting_missing(f"exchange '{exchange}'"):
        found = first_rows(session, ("exchanges", session.vhost, exchange, "kept"), limit)
    session.output.rows(chosen, [KEPT.row(each, chosen) for each in found])


@verb
@click.argument("exchange")
@click.argument("keys", nargs=-1)
@click.option("--all", "is_all", is_flag=True, help="Drop all kept messages.")
def drop_kept_messages(session: VerbSession, exchange: str, keys: tuple[str, ...], is_all: bool) -> None:
    """Drop messages that an exchange keeps, by key or all of them."""
    if is_all == bool(keys):
        raise WrongUsage("give either keys or --all")
    which = "all kept messages" if is_all else f"{len(keys)} kept message(s)"
    session.output.announce(f"Dropping {which} of exchange '{exchange}' in vhost '{session.vhost}' ...")
    path = ("exchanges", session.vhost, exchange, "kept")
    if is_all:
        with session.reporting_missing(f"exchange '{exchange}'"):
            session.api.delete(*path)
    for key in keys:
        with session.reporting_missing(f"a kept message with key '{key}' of exchange '{exchange}'"):
            session.api.delete(*path, query={"key": key})


@verb
@columns_argument
def list_deduplication_windows(session: VerbSession, columns: tuple[str, ...]) -> None:
    """List how many keys the queues and exchanges remember that drop repeated messages."""
    print_listing(session, WINDOWS, columns)


@verb
@click.argument("name")
@of_exchange
def clear_deduplication_window(session: VerbSession, name: str, is_exchange: bool) -> None:
    """Forget the keys of a queue or an exchange: a repeated message is new once more."""
    kind = "exchange" if is_exchange else "queue"
    session.output.announce(f"Clearing the deduplication window of {kind} '{name}' in vhost '{session.vhost}' ...")
    with session.reporting_missing(f"a deduplication window of {kind} '{name}'"):
        session.api.delete(f"{kind}s", session.vhost, name, "deduplication")


VERBS = (list_kept_messages, drop_kept_messages, list_deduplication_windows, clear_deduplication_window)
