"""Verbs for limits of virtual hosts and users."""

import click

from gateway.cli.ctl.errors import NoSuchUser, NoSuchVirtualHost, UnknownEntity
from gateway.cli.ctl.session import VerbSession
from gateway.cli.ctl.values import JsonObject, compact, parse_object, part, text
from gateway.cli.ctl.verb import verb
from gateway.cli.ctl.verbs.users import require_user
from gateway.kernel.settings.limits import USER_LIMITS, VHOST_LIMITS

ALL = "all"


@verb
@click.argument("definition")
def set_vhost_limits(session: VerbSession, definition: str) -> None:
    """Replace the limits of a virtual host by DEFINITION, a JSON object."""
    session.output.announce(f'Setting vhost limits to "{definition}" for vhost "{session.vhost}" ...')
    limits = parse_object(definition, "the definition")
    session.require_vhost()
    for name, value in limits.items():
        session.api.put("vhost-limits", session.vhost, name, body={"value": value})
    for name in VHOST_LIMITS:
        if name not in limits:
            _clear(session, "vhost-limits", session.vhost, name)


@verb
def clear_vhost_limits(session: VerbSession) -> None:
    """Remove the limits of a virtual host."""
    session.output.announce(f'Clearing vhost "{session.vhost}" limits ...')
    session.require_vhost()
    for name in VHOST_LIMITS:
        _clear(session, "vhost-limits", session.vhost, name)


@verb
@click.option("--global", "of_all", is_flag=True, help="List those of all virtual hosts.")
def list_vhost_limits(session: VerbSession, of_all: bool) -> None:
    """Print the limits of a virtual host, or a table of all virtual hosts that have limits."""
    scope = "all vhosts" if of_all else f'vhost "{session.vhost}"'
    session.output.announce(f"Listing limits for {scope} ...")
    with session.on_not_found(NoSuchVirtualHost(session.vhost)):
        found = session.api.list("vhost-limits", *([] if of_all else [session.vhost]))
    _print(session, "vhost", list(found), of_all)


@verb
@click.argument("user")
@click.argument("definition")
def set_user_limits(session: VerbSession, user: str, definition: str) -> None:
    """Set limits of a user, given as a JSON object such as {"max-queues": 100}. Other limits are kept."""
    session.output.announce(f'Setting user limits to "{definition}" for user "{user}" ...')
    limits = parse_object(definition, "the definition")
    require_user(session, user)
    for name, value in limits.items():
        session.api.put("user-limits", user, name, body={"value": value})


@verb
@click.argument("user")
@click.argument("limit")
def clear_user_limits(session: VerbSession, user: str, limit: str) -> None:
    """Remove one LIMIT of a user, or all of them."""
    what = "all limits" if limit == ALL else f'"{limit}" limit'
    session.output.announce(f'Clearing {what} for user "{user}" ...')
    require_user(session, user)
    for name in USER_LIMITS if limit == ALL else (limit,):
        _clear(session, "user-limits", user, name)


@verb
@click.option("--user", help="Name of the user; by default the one logged in.")
@click.option("--global", "of_all", is_flag=True, help="List those of all users.")
def list_user_limits(session: VerbSession, user: str | None, of_all: bool) -> None:
    """Print the limits of a user, or a table of all users that have limits."""
    name = user or ("" if of_all else text(session.api.get("whoami"), "name"))
    scope = "all users" if of_all else f'user "{name}"'
    session.output.announce(f"Listing limits for {scope} ...")
    with session.on_not_found(NoSuchUser(name)):
        found = session.api.list("user-limits", *([] if of_all else [name]))
    _print(session, "user", list(found), of_all)


def _clear(session: VerbSession, kind: str, owner: str, name: str) -> None:
    """Remove a limit, if there is one."""
    try:
        session.api.delete(kind, owner, name)
    except UnknownEntity:
        return


def _print(session: VerbSession, owner: str, found: list[JsonObject], of_all: bool) -> None:
    """Print a table of all owners, or the limits of one."""
    if of_all:
        rows: list[JsonObject] = [{owner: part(each, owner), "limits": compact(part(each, "value"))} for each in found]
        session.output.rows((owner, "limits"), [row for row in rows if row["limits"] not in ("{}", "[]")])
    else:
        session.output.value((part(found[0], "value") or {}) if found else {})


VERBS = (
    set_vhost_limits,
    clear_vhost_limits,
    list_vhost_limits,
    set_user_limits,
    clear_user_limits,
    list_user_limits,
)
