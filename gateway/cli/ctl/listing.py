"""Lists with columns of the operator's choice: what a noun offers, and how its objects become rows."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import click

from gateway.cli.ctl.errors import NoSuchVirtualHost, WrongUsage
from gateway.cli.ctl.session import VerbSession
from gateway.cli.ctl.values import Json, JsonObject, part

columns_argument = click.argument("columns", nargs=-1)
"""Adds the names of columns to a verb."""


@dataclass(frozen=True, slots=True)
class ListedNoun:
    """What can be listed of one noun.

    ``columns`` maps the name of a column to where its value stands in the API's object, with dots for what is nested;
    ``constants`` holds columns that the API does not need. ``{vhost}`` in the banner is the virtual host.
    """

    path: tuple[str, ...]
    columns: Mapping[str, str]
    defaults: tuple[str, ...]
    banner: str
    is_in_vhost: bool = False
    constants: Mapping[str, Json] = field(default_factory=dict)

    def chosen(self, asked: Iterable[str]) -> tuple[str, ...]:
        """The columns asked for, which may be joined by commas. :raises WrongUsage: for one that is not there."""
        names = tuple(name for word in asked for name in word.split(",") if name) or self.defaults
        unknown = [name for name in names if name not in self.columns and name not in self.constants]
        if unknown:
            offered = ", ".join(sorted({*self.columns, *self.constants}))
            raise WrongUsage(f"Info key(s) {', '.join(unknown)} are not supported; there are {offered}")
        return names

    def row(self, found: JsonObject, columns: Iterable[str]) -> JsonObject:
        """The columns of one object."""
        return {
            name: self.constants[name] if name in self.constants else part(found, *self.columns[name].split("."))
            for name in columns
        }


def listed(
    session: VerbSession,
    listing: ListedNoun,
    asked: Iterable[str],
    *,
    keeps: Callable[[JsonObject], bool] = lambda found: True,
    needs: Iterable[str] = (),
) -> None:
    """Print what there is of a noun: the objects that ``keeps`` wants to see, for which it needs these fields."""
    columns = listing.chosen(asked)
    session.output.announce(listing.banner.format(vhost=session.vhost))
    fields = {listing.columns[name] for name in columns if name in listing.columns} | set(needs)
    path = (*listing.path, session.vhost) if listing.is_in_vhost else listing.path
    with session.where_absent(NoSuchVirtualHost(session.vhost)):
        found = session.api.list(*path, query={"columns": ",".join(sorted(fields))})
    session.output.rows(columns, [listing.row(each, columns) for each in found if keeps(each)])
