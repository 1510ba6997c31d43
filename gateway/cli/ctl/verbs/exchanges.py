"""Verbs for exchanges and bindings."""

from gateway.cli.ctl.listing import NounListing, columns_argument, print_listing
from gateway.cli.ctl.session import VerbSession
from gateway.cli.ctl.verb import verb

SAME_NAME = (
    "name",
    "vhost",
    "type",
    "durable",
    "auto_delete",
    "internal",
    "arguments",
    "policy",
    "messages_delayed",
    "inert",
)

EXCHANGES = NounListing(
    path=("exchanges",),
    columns={name: name for name in SAME_NAME},
    defaults=("name", "type"),
    banner="Listing exchanges for vhost {vhost} ...",
    is_in_vhost=True,
)

BINDINGS = NounListing(
    path=("bindings",),
    columns={
        "source_name": "source",
        "destination_name": "destination",
        "destination_kind": "destination_type",
        "routing_key": "routing_key",
        "arguments": "arguments",
        "properties_key": "properties_key",
        "vhost": "vhost",
    },
    constants={"source_kind": "exchange"},
    defaults=("source_name", "source_kind", "destination_name", "destination_kind", "routing_key", "arguments"),
    banner="Listing bindings for vhost {vhost}...",
    is_in_vhost=True,
)


@verb
@columns_argument
def list_exchanges(session: VerbSession, columns: tuple[str, ...]) -> None:
    """List the exchanges of a virtual host, by default with the columns name and type."""
    print_listing(session, EXCHANGES, columns)


@verb
@columns_argument
def list_bindings(session: VerbSession, columns: tuple[str, ...]) -> None:
    """List the bindings of a virtual host."""
    print_listing(session, BINDINGS, columns)


VERBS = (list_exchanges, list_bindings)
