"""The verb for the audit record, which rabbitmqctl does not have."""

from typing import Final

import click

from gateway.cli.ctl.listing import NounListing, columns_argument
from gateway.cli.ctl.session import VerbSession
from gateway.cli.ctl.values import JsonObject, number, objects, part
from gateway.cli.ctl.verb import verb

_COLUMNS: Final = (
    *("number", "at", "at_ms", "user", "address", "surface", "action", "vhost", "subject", "before", "after"),
    "details",
)

LISTING: Final = NounListing(
    path=("audit",),
    columns={name: name for name in _COLUMNS},
    defaults=("at", "user", "address", "surface", "action", "vhost", "subject"),
    banner="Listing the audit record ...",
)

#: Largest page of the API.
_MAX_PAGE_SIZE: Final = 500


@verb
@columns_argument
@click.option("--user", help="Only changes of this user.")
@click.option("--address", help="Only changes from this address.")
@click.option("--surface", help="Only changes by HTTP, CLI, definitions, configuration, plugin or amqp.")
@click.option("--action", help="Only this action, such as user.created; a final * stands for anything.")
@click.option("--subject", help="Only changes of this object; a final * stands for anything.")
@click.option("--since", help="Only changes since a time such as 2026-11-24T08:00:00Z.")
@click.option("--until", help="Only changes up to this time.")
@click.option("--limit", type=click.IntRange(min=1), default=100, help="Maximum number to list, the newest. [100]")
def audit(session: VerbSession, columns: tuple[str, ...], limit: int, **filters: str | None) -> None:
    """List the changes that operators made, the newest first. With -p, those in a virtual host."""
    chosen = LISTING.chosen(columns)
    session.output.announce(LISTING.banner)
    wanted = {name: value for name, value in filters.items() if value is not None}
    if session.named_vhost is not None:
        wanted["vhost"] = session.named_vhost
    found = _newest(session, wanted, limit)
    session.output.rows(chosen, [LISTING.row(each, chosen) for each in found])


def _newest(session: VerbSession, wanted: dict[str, str], limit: int) -> list[JsonObject]:
    found: list[JsonObject] = []
    size = min(limit, _MAX_PAGE_SIZE)
    page, pages = 1, 1
    while page <= pages and len(found) < limit:
        answer = session.api.get("audit", query={**wanted, "page": str(page), "page_size": str(size)})
        found += objects(part(answer, "items"))
        page, pages = page + 1, number(answer, "page_count")
    return found[:limit]


VERBS = (audit,)
