"""Verbs for users, their passwords and their tags."""

import sys

import click

from gateway.cli.ctl.errors import NoSuchUser, NotPermitted, UnknownEntity, UserExists, WrongData
from gateway.cli.ctl.session import VerbSession
from gateway.cli.ctl.values import Json, JsonObject, part
from gateway.cli.ctl.verb import verb

NOT_FOR_MANAGEMENT = "Not management user"
"""The broker's reason if the password is right but the user may not use the management API."""


@verb
@click.argument("name")
@click.argument("password", required=False)
def add_user(session: VerbSession, name: str, password: str | None) -> None:
    """Create a user without permissions. Without PASSWORD, it is read from standard input."""
    session.output.announce(f'Adding user "{name}" ...')
    secret = given_password(password)
    try:
        session.api.get("users", name)
    except UnknownEntity:
        session.api.put("users", name, body={"password": secret, "tags": ""})
    else:
        raise UserExists(name)
    session.output.announce(
        "Done. Don't forget to grant the user permissions to some virtual hosts! "
        "See 'gatewayctl help set_permissions' to learn more."
    )


@verb
@click.argument("name")
def delete_user(session: VerbSession, name: str) -> None:
    """Delete a user."""
    session.output.announce(f'Deleting user "{name}" ...')
    with session.on_not_found(NoSuchUser(name)):
        session.api.delete("users", name)


@verb
@click.argument("name")
@click.argument("password", required=False)
def change_password(session: VerbSession, name: str, password: str | None) -> None:
    """Change the password of a user. Without PASSWORD, it is read from standard input."""
    session.output.announce(f'Changing password for user "{name}" ...')
    secret = given_password(password)
    user = require_user(session, name)
    session.api.put("users", name, body={"password": secret, "tags": _written(user["tags"])})


@verb
@click.argument("name")
def clear_password(session: VerbSession, name: str) -> None:
    """Remove the password of a user: password logins fail until a new one is set."""
    session.output.announce(f'Clearing password for user "{name}" ...')
    user = require_user(session, name)
    session.api.put("users", name, body={"password_hash": "", "tags": _written(user["tags"])})


@verb
@click.argument("name")
@click.argument("tags", nargs=-1)
def set_user_tags(session: VerbSession, name: str, tags: tuple[str, ...]) -> None:
    """Replace a user's tags: administrator, monitoring, policymaker, management, impersonator."""
    session.output.announce(f'Setting tags for user "{name}" to [{", ".join(tags)}] ...')
    user = require_user(session, name)
    kept: JsonObject = {key: user[key] for key in ("password_hash", "hashing_algorithm") if key in user}
    session.api.put("users", name, body={**kept, "tags": ",".join(tags)})


@verb
def list_users(session: VerbSession) -> None:
    """List the users and their tags."""
    session.output.announce("Listing users ...")
    users = session.api.list("users")
    session.output.rows(("user", "tags"), [{"user": part(user, "name"), "tags": _tags(user)} for user in users])


@verb
@click.argument("name")
@click.argument("password", required=False)
def authenticate_user(session: VerbSession, name: str, password: str | None) -> None:
    """Check a user's password by logging in."""
    session.output.announce(f'Authenticating user "{name}" ...')
    try:
        session.api.as_user(name, given_password(password)).get("whoami")
    except NotPermitted as error:
        if error.reason != NOT_FOR_MANAGEMENT:
            raise WrongData(f'failed to authenticate user "{name}": {error.reason}') from None
    session.output.conclude("Success")


@verb
@click.argument("password", required=False)
def hash_password(session: VerbSession, password: str | None) -> None:
    """Print the hash of a password in the format of definitions, without contacting the broker."""
    from gateway.access.passwords import hash_password as hashed  # with the kernel, which other verbs do not need

    session.output.announce("Will hash provided password")
    session.output.text(hashed(given_password(password)))


def require_user(session: VerbSession, name: str) -> JsonObject:
    """Return a user as in the API. :raises NoSuchUser: if it does not exist."""
    with session.on_not_found(NoSuchUser(name)):
        user = session.api.get("users", name)
    return {"tags": [], **user} if isinstance(user, dict) else {"tags": []}


def given_password(given: str | None) -> str:
    """Return the given password or the first line of standard input. :raises WrongData: if it is empty."""
    if given is None and sys.stdin.isatty():
        given = click.prompt("Password", hide_input=True, default="", show_default=False, err=True)
    secret = sys.stdin.readline().rstrip("\r\n") if given is None else given
    if not secret:
        raise WrongData("Password is not provided via argument or stdin")
    return secret


def _tags(user: JsonObject) -> Json:
    """Return a user's tags as a list; brokers before 3.9 wrote one string with commas."""
    tags = user.get("tags")
    return [tag for tag in tags.split(",") if tag] if isinstance(tags, str) else tags


def _written(tags: Json) -> str:
    """Return tags in the form that every version of the API accepts: one string with commas."""
    return ",".join(str(tag) for tag in tags) if isinstance(tags, list) else str(tags)


VERBS = (
    add_user,
    delete_user,
    change_password,
    clear_password,
    set_user_tags,
    list_users,
    authenticate_user,
    hash_password,
)
