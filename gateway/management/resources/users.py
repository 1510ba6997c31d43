"""/users: the users of the internal database."""

from gateway.kernel.records import UserRecord
from gateway.management.authority import Level
from gateway.management.bodies import base64, require, tags
from gateway.management.call import Call
from gateway.management.errors import bad_request, missing
from gateway.management.listing import Listing, with_columns
from gateway.management.resources.permissions import permission_listing
from gateway.management.resources.topic_permissions import topic_permission_listing
from gateway.management.routes import Fields, Reply, Routes, put_reply
from gateway.passwords import DEFAULT_ALGORITHM, DIGESTS, hash_password
from gateway.scram import kept_credential

routes = Routes()


@routes.get("/users", level=Level.ADMINISTRATOR)
def users(call: Call) -> Listing[UserRecord]:
    """List the users."""
    return _listing(list(call.broker.directory.user_by_name.values()))


@routes.get("/users/without-permissions", level=Level.ADMINISTRATOR)
def without_permissions(call: Call) -> Listing[UserRecord]:
    """List the users who may not enter any virtual host."""
    directory = call.broker.directory
    permitted = {permission.user for permission in directory.permissions}
    return _listing([user for user in directory.user_by_name.values() if user.name not in permitted])


@routes.post("/users/bulk-delete", level=Level.ADMINISTRATOR)
def delete_users(call: Call) -> None:
    """Delete several users; all of them have to be there."""
    (names,) = require(call.fields, "users")
    directory = call.broker.directory
    for name in names:
        if directory.user(name) is None:
            raise bad_request(["no_such_user", name])
    for name in names:
        directory.remove_user(name)


@routes.get("/users/<name>", level=Level.ADMINISTRATOR)
def user(call: Call, name: str) -> Fields:
    """Show a user."""
    return with_columns(user_view(_existing(call, name)), call.query)


@routes.put("/users/<name>", level=Level.ADMINISTRATOR)
def put_user(call: Call, name: str) -> Reply:
    """Make a user, or change the password and the tags."""
    fields, directory = call.fields, call.broker.directory
    known = directory.user(name)
    directory.put_user(user_of(name, fields, known))
    return put_reply(known is not None)


@routes.delete("/users/<name>", level=Level.ADMINISTRATOR)
def delete_user(call: Call, name: str) -> None:
    """Delete a user; the user's connections end."""
    _existing(call, name)
    call.broker.directory.remove_user(name)


@routes.get("/users/<name>/permissions", level=Level.ADMINISTRATOR)
def permissions(call: Call, name: str) -> object:
    """List what a user may do."""
    _existing(call, name)
    return permission_listing(call, lambda permission: permission.user == name)


@routes.get("/users/<name>/topic-permissions", level=Level.ADMINISTRATOR)
def topic_permissions(call: Call, name: str) -> object:
    """List which routing keys a user may use."""
    _existing(call, name)
    return topic_permission_listing(call, lambda permission: permission.user == name)


def user_view(user: UserRecord) -> Fields:
    """Return a user, with the hash of the password."""
    return {
        "name": user.name,
        "password_hash": user.password_hash,
        "hashing_algorithm": user.hashing_algorithm,
        "tags": list(user.tags),
        "limits": dict(user.limits),
    }


def user_of(name: str, fields: Fields, known: UserRecord | None) -> UserRecord:
    """Return the record of a user that is put. Without a password there is none to log in with."""
    if "tags" not in fields:
        raise bad_request("tags_not_present")
    if "password" in fields and "password_hash" in fields:
        raise bad_request("both_password_and_password_hash_are_provided")
    algorithm = fields.get("hashing_algorithm", DEFAULT_ALGORITHM)
    if algorithm not in DIGESTS:
        raise bad_request(["unknown_hashing_algorithm", algorithm])
    limits = known.limits if known is not None else {}
    password, hashed = fields.get("password"), _password_hash(fields, algorithm)
    credential = kept_credential(password if isinstance(password, str) else None, hashed, known)
    return UserRecord(name, hashed, algorithm, list(tags(fields["tags"])), limits, credential)


def _password_hash(fields: Fields, algorithm: str) -> str:
    password, given = fields.get("password"), fields.get("password_hash", "")
    if isinstance(password, str) and password:
        return hash_password(password, algorithm)
    if not isinstance(given, str):
        raise bad_request(["not_base64", given])
    base64(given)
    return given


def _listing(users: list[UserRecord]) -> Listing[UserRecord]:
    return Listing(users, user_view, lambda user: ("", user.name))


def _existing(call: Call, name: str) -> UserRecord:
    user = call.broker.directory.user(name)
    if user is None:
        raise missing()
    return user
