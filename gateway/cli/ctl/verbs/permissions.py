"""Verbs for permissions and topic permissions."""

from collections.abc import Iterable

import click

from gateway.cli.ctl.errors import Declined, NoSuchUser, NoSuchVirtualHost, UnknownEntity
from gateway.cli.ctl.session import VerbSession
from gateway.cli.ctl.values import JsonObject, text
from gateway.cli.ctl.verb import verb
from gateway.cli.ctl.verbs.users import require_user

PERMISSIONS = ("configure", "write", "read")
TOPIC_PERMISSIONS = ("exchange", "write", "read")


@verb
@click.argument("user")
@click.argument("configure")
@click.argument("write")
@click.argument("read")
def set_permissions(session: VerbSession, user: str, configure: str, write: str, read: str) -> None:
    """Set the permissions of USER in a virtual host, as patterns of names."""
    session.output.announce(f'Setting permissions for user "{user}" in vhost "{session.vhost}" ...')
    _grant(session, "permissions", user, {"configure": configure, "write": write, "read": read})


@verb
@click.argument("user")
def clear_permissions(session: VerbSession, user: str) -> None:
    """Remove the permissions of USER in a virtual host."""
    session.output.announce(f'Clearing permissions for user "{user}" in vhost "{session.vhost}" ...')
    _revoke(session, "permissions", user)


@verb
def list_permissions(session: VerbSession) -> None:
    """List the permissions in a virtual host."""
    session.output.announce(f'Listing permissions for vhost "{session.vhost}" ...')
    _list_in_vhost(session, "permissions", ("user", *PERMISSIONS))


@verb
@click.argument("user")
def list_user_permissions(session: VerbSession, user: str) -> None:
    """List the permissions of USER in all virtual hosts."""
    session.output.announce(f'Listing permissions for user "{user}" ...')
    _list_of_user(session, "permissions", user, ("vhost", *PERMISSIONS))


@verb
@click.argument("user")
@click.argument("exchange")
@click.argument("write")
@click.argument("read")
def set_topic_permissions(session: VerbSession, user: str, exchange: str, write: str, read: str) -> None:
    """Set the permissions of USER for a topic EXCHANGE, as patterns of routing keys."""
    session.output.announce(
        f'Setting topic permissions on "{exchange}" for user "{user}" in vhost "{session.vhost}" ...'
    )
    _grant(session, "topic-permissions", user, {"exchange": exchange, "write": write, "read": read})


@verb
@click.argument("user")
@click.argument("exchange", required=False)
def clear_topic_permissions(session: VerbSession, user: str, exchange: str | None) -> None:
    """Remove the topic permissions of USER in a virtual host, for all exchanges or one EXCHANGE."""
    on = "" if exchange is None else f' on "{exchange}"'
    session.output.announce(f'Clearing topic permissions{on} for user "{user}" in vhost "{session.vhost}" ...')
    _revoke(session, "topic-permissions", user, *([] if exchange is None else [exchange]))


@verb
def list_topic_permissions(session: VerbSession) -> None:
    """List the topic permissions in a virtual host."""
    session.output.announce(f'Listing topic permissions for vhost "{session.vhost}" ...')
    _list_in_vhost(session, "topic-permissions", ("user", *TOPIC_PERMISSIONS))


@verb
@click.argument("user")
def list_user_topic_permissions(session: VerbSession, user: str) -> None:
    """List the topic permissions of USER in all virtual hosts."""
    session.output.announce(f'Listing topic permissions for user "{user}" ...')
    _list_of_user(session, "topic-permissions", user, ("vhost", *TOPIC_PERMISSIONS))


def _grant(session: VerbSession, kind: str, user: str, patterns: JsonObject) -> None:
    """Set permissions; find out whether the user or the virtual host is missing, as the API's error does not."""
    try:
        session.api.put(kind, session.vhost, user, body=patterns)
    except Declined:
        session.require_vhost()
        require_user(session, user)
        raise


def _revoke(session: VerbSession, kind: str, user: str, *exchange: str) -> None:
    """Clear permissions; as in rabbitmqctl, it is no error if there are none."""
    try:
        session.api.delete(kind, session.vhost, user, *exchange)
    except UnknownEntity:
        session.require_vhost()
        require_user(session, user)


def _list_in_vhost(session: VerbSession, kind: str, columns: tuple[str, ...]) -> None:
    with session.on_not_found(NoSuchVirtualHost(session.vhost)):
        found = session.api.list("vhosts", session.vhost, kind)
    session.output.rows(columns, _sorted(found))


def _list_of_user(session: VerbSession, kind: str, user: str, columns: tuple[str, ...]) -> None:
    with session.on_not_found(NoSuchUser(user)):
        found = session.api.list("users", user, kind)
    session.output.rows(columns, _sorted(found))


def _sorted(permissions: Iterable[JsonObject]) -> list[JsonObject]:
    return sorted(permissions, key=lambda each: (text(each, "vhost"), text(each, "user"), text(each, "exchange")))


VERBS = (
    set_permissions,
    clear_permissions,
    list_permissions,
    list_user_permissions,
    set_topic_permissions,
    clear_topic_permissions,
    list_topic_permissions,
    list_user_topic_permissions,
)
