"""Listings of entities with columns chosen by the operator."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import click

from gateway.cli.ctl.errors import NoSuchVirtualHost, WrongUsage
from gateway.cli.ctl.session import VerbSession
from gateway.cli.ctl.values import Json, JsonObject, part

columns_argument = click.argument("columns", nargs=-1)
"""Adds column names as arguments of a verb."""


@dataclass(frozen=True, slots=True)
class NounListing:
    """A listing of one kind of entity.

    ``columns`` maps a column to the path of its value in the API's object, with dots for nested objects; ``constants``
    holds columns with a fixed value. ``{vhost}`` in the banner is the virtual host.
    """

    path: tuple[str, ...]
    columns: Mapping[str, str]
    defaults: tuple[str, ...]
    banner: str
    is_in_vhost: bool = False
    constants: Mapping[str, Json] = field(default_factory=dict)

    def chosen(self, requested: Iterable[str]) -> tuple[str, ...]:
        """Return the requested columns, which may be joined by commas. :raises WrongUsage: for an unknown one."""
        names = tuple(name for word in requested for name in word.split(",") if name) or self.defaults
        unknown = [name for name in names if name not in self.columns and name not in self.constants]
        if unknown:
            offered = ", ".join(sorted({*self.columns, *self.constants}))
            raise WrongUsage(f"Info key(s) {', '.join(unknown)} are not supported; supported are {offered}")
        return names

    def row(self, found: JsonObject, columns: Iterable[str]) -> JsonObject:
        """Return the columns of one object."""
        return {
            name: self.constants[name] if name in self.constants else part(found, *self.columns[name].split("."))
            for name in columns
        }


def print_listing(
    session: VerbSession,
    listing: NounListing,
    requested: Iterable[str],
    *,
    predicate: Callable[[JsonObject], bool] = lambda found: True,
    extra_fields: Iterable[str] = (),
) -> None:
    """Print a listing: the objects that match the predicate, which reads ``extra_fields``."""
    columns = listing.chosen(requested)
    session.output.announce(listing.banner.format(vhost=session.vhost))
    fields = {listing.columns[name] for name in columns if name in listing.columns} | set(extra_fields)
    path = (*listing.path, session.vhost) if listing.is_in_vhost else listing.path
    with session.on_not_found(NoSuchVirtualHost(session.vhost)):
        found = session.api.list(*path, query={"columns": ",".join(sorted(fields))})
    session.output.rows(columns, [listing.row(each, columns) for each in found if predicate(each)])
