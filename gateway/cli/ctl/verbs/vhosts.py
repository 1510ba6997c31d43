"""Verbs for virtual hosts, and for tracing, which is one of their settings."""

import click

from gateway.cli.ctl.errors import NoSuchVirtualHost
from gateway.cli.ctl.listing import NounListing, columns_argument, print_listing
from gateway.cli.ctl.session import VerbSession
from gateway.cli.ctl.values import Json, JsonObject, part
from gateway.cli.ctl.verb import verb

VHOSTS = NounListing(
    path=("vhosts",),
    columns={
        "name": "name",
        "tracing": "tracing",
        "description": "description",
        "tags": "tags",
        "default_queue_type": "default_queue_type",
        "protected_from_deletion": "protected_from_deletion",
        "cluster_state": "cluster_state",
        "cell": "cell",
        "inert_plugins": "inert_plugins",
        "messages": "messages",
        "messages_ready": "messages_ready",
        "messages_unacknowledged": "messages_unacknowledged",
    },
    defaults=("name",),
    banner="Listing vhosts ...",
)


@verb
@click.argument("name")
@click.option("--description", help="Description of the virtual host.")
@click.option("--tags", help="Tags, separated by commas.")
@click.option("--default-queue-type", help="Type of queues declared without a type.")
@click.option("--cell", type=click.IntRange(1), help="Cell of a cluster with several; by default the least used one.")
def add_vhost(
    session: VerbSession,
    name: str,
    description: str | None,
    tags: str | None,
    default_queue_type: str | None,
    cell: int | None,
) -> None:
    """Create a virtual host. An existing one is kept and gets the given metadata."""
    session.output.announce(f'Adding vhost "{name}" ...')
    given = {"description": description, "tags": tags, "default_queue_type": default_queue_type, "cell": cell}
    session.api.put("vhosts", name, body={key: value for key, value in given.items() if value is not None})


@verb
@click.argument("name")
def delete_vhost(session: VerbSession, name: str) -> None:
    """Delete a virtual host with everything in it."""
    session.output.announce(f'Deleting vhost "{name}" ...')
    with session.on_not_found(NoSuchVirtualHost(name)):
        session.api.delete("vhosts", name)


@verb
@click.argument("name")
def enable_vhost_protection_from_deletion(session: VerbSession, name: str) -> None:
    """Protect a virtual host from deletion."""
    session.output.announce(f'Protecting vhost "{name}" from deletion ...')
    with session.on_not_found(NoSuchVirtualHost(name)):
        session.api.post("vhosts", name, "deletion", "protection", body=b"")


@verb
@click.argument("name")
def disable_vhost_protection_from_deletion(session: VerbSession, name: str) -> None:
    """Remove the protection of a virtual host from deletion."""
    session.output.announce(f'Lifting protection of vhost "{name}" from deletion ...')
    with session.on_not_found(NoSuchVirtualHost(name)):
        session.api.delete("vhosts", name, "deletion", "protection")


@verb
@columns_argument
def list_vhosts(session: VerbSession, columns: tuple[str, ...]) -> None:
    """List the virtual hosts."""
    print_listing(session, VHOSTS, columns)


@verb
@click.argument("name")
@click.argument("tags", nargs=-1)
def set_vhost_tags(session: VerbSession, name: str, tags: tuple[str, ...]) -> None:
    """Replace the tags of a virtual host."""
    session.output.announce(f'Setting tags for virtual host "{name}" to [{", ".join(tags)}] ...')
    change_vhost(session, name, {"tags": ",".join(tags)})


@verb
def trace_on(session: VerbSession) -> None:
    """Start the firehose of a virtual host: a copy of every message to amq.rabbitmq.trace."""
    session.output.announce(f'Starting tracing for vhost "{session.vhost}" ...')
    change_vhost(session, session.vhost, {"tracing": True})
    session.output.conclude(f"Trace enabled for vhost {session.vhost}")


@verb
def trace_off(session: VerbSession) -> None:
    """Stop the firehose of a virtual host."""
    session.output.announce(f'Stopping tracing for vhost "{session.vhost}" ...')
    change_vhost(session, session.vhost, {"tracing": False})
    session.output.conclude(f"Trace disabled for vhost {session.vhost}")


def change_vhost(session: VerbSession, name: str, changes: JsonObject) -> None:
    """Change settings of an existing virtual host; the others are sent too, because a PUT replaces all of them."""
    with session.on_not_found(NoSuchVirtualHost(name)):
        vhost = session.api.get("vhosts", name)
    tags: Json = part(vhost, "tags")
    kept: JsonObject = {
        "tracing": part(vhost, "tracing") is True,
        "description": part(vhost, "description") or "",
        "tags": ",".join(map(str, tags)) if isinstance(tags, list) else tags or "",
    }
    queue_type = part(vhost, "default_queue_type")
    if queue_type not in (None, "undefined"):
        kept["default_queue_type"] = queue_type
    session.api.put("vhosts", name, body={**kept, **changes})


VERBS = (
    add_vhost,
    delete_vhost,
    enable_vhost_protection_from_deletion,
    disable_vhost_protection_from_deletion,
    list_vhosts,
    set_vhost_tags,
    trace_on,
    trace_off,
)
