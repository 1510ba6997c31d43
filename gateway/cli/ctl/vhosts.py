"""The verbs of virtual hosts, and of tracing, which is a setting of theirs."""

import click

from gateway.cli.ctl.errors import NoSuchVirtualHost
from gateway.cli.ctl.listing import ListedNoun, columns_argument, listed
from gateway.cli.ctl.session import VerbSession
from gateway.cli.ctl.values import Json, JsonObject, part
from gateway.cli.ctl.verb import verb

VHOSTS = ListedNoun(
    path=("vhosts",),
    columns={
        "name": "name",
        "tracing": "tracing",
        "description": "description",
        "tags": "tags",
        "default_queue_type": "default_queue_type",
        "protected_from_deletion": "protected_from_deletion",
        "cluster_state": "cluster_state",
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
@click.option("--description", help="What it is for.")
@click.option("--tags", help="Tags, separated by commas.")
@click.option("--default-queue-type", help="The type of queues that are declared without one.")
def add_vhost(
    session: VerbSession, name: str, description: str | None, tags: str | None, default_queue_type: str | None
) -> None:
    """Create a virtual host. One that exists stays, with the metadata given here."""
    session.output.announce(f'Adding vhost "{name}" ...')
    given = {"description": description, "tags": tags, "default_queue_type": default_queue_type}
    session.api.put("vhosts", name, body={key: value for key, value in given.items() if value is not None})


@verb
@click.argument("name")
def delete_vhost(session: VerbSession, name: str) -> None:
    """Delete a virtual host with everything in it."""
    session.output.announce(f'Deleting vhost "{name}" ...')
    with session.where_absent(NoSuchVirtualHost(name)):
        session.api.delete("vhosts", name)


@verb
@click.argument("name")
def enable_vhost_protection_from_deletion(session: VerbSession, name: str) -> None:
    """Let nobody delete a virtual host until the protection is lifted."""
    session.output.announce(f'Protecting vhost "{name}" from deletion ...')
    with session.where_absent(NoSuchVirtualHost(name)):
        session.api.post("vhosts", name, "deletion", "protection", body=b"")


@verb
@click.argument("name")
def disable_vhost_protection_from_deletion(session: VerbSession, name: str) -> None:
    """Let a virtual host be deleted again."""
    session.output.announce(f'Lifting protection of vhost "{name}" from deletion ...')
    with session.where_absent(NoSuchVirtualHost(name)):
        session.api.delete("vhosts", name, "deletion", "protection")


@verb
@columns_argument
def list_vhosts(session: VerbSession, columns: tuple[str, ...]) -> None:
    """List the virtual hosts."""
    listed(session, VHOSTS, columns)


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
    """Change settings of a virtual host that exists. A PUT replaces all of them, so the others are sent along."""
    with session.where_absent(NoSuchVirtualHost(name)):
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
