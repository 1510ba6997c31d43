"""/users: the users of the internal database."""

from dataclasses import dataclass, field

from twisted.internet.defer import Deferred, maybeDeferred

from gateway.access.passwords import ALGORITHMS, ARGON2ID, algorithm_of, hash_password, is_password_hash
from gateway.access.scram import kept_credential
from gateway.kernel.broker.directory import Directory
from gateway.kernel.broker.entity_checks import require_valid_user
from gateway.kernel.journal.records.access import UserRecord
from gateway.kernel.messages.message import Value
from gateway.management.http.access_levels import AccessLevel
from gateway.management.http.bodies import base64, require, tags
from gateway.management.http.call import Call
from gateway.management.http.errors import bad_request, busy, missing
from gateway.management.http.listing import Listing, with_columns
from gateway.management.http.routes import LIST_BODY, Fields, Reply, Routes, put_reply
from gateway.management.resources.access.permissions import permission_listing
from gateway.management.resources.access.topic_permissions import topic_permission_listing

routes = Routes()


@routes.get("/users", level=AccessLevel.ADMINISTRATOR)
def users(call: Call) -> Listing[UserRecord]:
    """List the users."""
    return _listing(list(call.broker.directory.user_by_name.values()))


@routes.get("/users/without-permissions", level=AccessLevel.ADMINISTRATOR)
def without_permissions(call: Call) -> Listing[UserRecord]:
    """List the users without permissions in any virtual host."""
    directory = call.broker.directory
    permitted = {permission.user for permission in directory.permissions}
    return _listing([user for user in directory.user_by_name.values() if user.name not in permitted])


@routes.post("/users/bulk-delete", level=AccessLevel.ADMINISTRATOR, largest_body=LIST_BODY)
def delete_users(call: Call) -> None:
    """Delete several users; all of them must exist."""
    (names,) = require(call.fields, "users")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise bad_request(["not_names", "users"])
    directory = call.broker.directory
    for name in names:
        if directory.user(name) is None:
            raise bad_request(["no_such_user", name])
    for name in names:
        directory.remove_user(name)


@routes.get("/users/<name>", level=AccessLevel.ADMINISTRATOR)
def user(call: Call, name: str) -> Fields:
    """Return a user."""
    return with_columns(user_view(_existing(call, name)), call.query)


@routes.put("/users/<name>", level=AccessLevel.ADMINISTRATOR)
def put_user(call: Call, name: str) -> "Reply | Deferred[Reply]":
    """Create a user, or change its password and tags."""
    update, directory = UserUpdate.read(name, call.fields, call.context.passwords.algorithm), call.broker.directory
    require_valid_user(_record(directory, update, "", ""))
    if not update.password:
        return _put(directory, update, update.password_hash, "")
    replied: Deferred[Reply] = Deferred(canceller=lambda _: None)
    changed = call.changed

    def put(hashed: tuple[str, str]) -> None:
        outcome: Deferred[Reply] = maybeDeferred(_put, directory, update, *hashed)
        outcome.addCallback(lambda reply: changed() or reply)
        if replied.called:  # the client has disconnected: drop a refusal
            outcome.addErrback(lambda _: None)
        else:
            outcome.chainDeferred(replied)

    def fail() -> None:
        if not replied.called:
            replied.errback(busy("the password could not be hashed"))

    if not call.context.passwords.submit(update.hashed, put, fail):
        raise busy("the queue of passwords to hash is full")
    return replied


@routes.delete("/users/<name>", level=AccessLevel.ADMINISTRATOR)
def delete_user(call: Call, name: str) -> None:
    """Delete a user and close its connections."""
    _existing(call, name)
    call.broker.directory.remove_user(name)


@routes.get("/users/<name>/permissions", level=AccessLevel.ADMINISTRATOR)
def permissions(call: Call, name: str) -> object:
    """List the permissions of a user."""
    _existing(call, name)
    return permission_listing(call, lambda permission: permission.user == name)


@routes.get("/users/<name>/topic-permissions", level=AccessLevel.ADMINISTRATOR)
def topic_permissions(call: Call, name: str) -> object:
    """List the topic permissions of a user."""
    _existing(call, name)
    return topic_permission_listing(call, lambda permission: permission.user == name)


def user_view(user: UserRecord) -> Fields:
    """Return the view of a user with its password hash."""
    return {
        "name": user.name,
        "password_hash": user.password_hash,
        "hashing_algorithm": user.hashing_algorithm,
        "tags": list(user.tags),
        "limits": dict(user.limits),
    }


@dataclass(frozen=True, slots=True)
class UserUpdate:
    """A user in a request: with a password, a password hash, or neither; then it cannot log in by password."""

    name: str
    tags: list[Value]
    algorithm: str
    password: str = field(default="", repr=False)
    password_hash: str = ""

    @classmethod
    def read(cls, name: str, fields: Fields, algorithm: str) -> "UserUpdate":
        """Parse the body of a request. ``algorithm`` is the default for clear-text passwords."""
        if "tags" not in fields:
            raise bad_request("tags_not_present")
        if "password" in fields and "password_hash" in fields:
            raise bad_request("both_password_and_password_hash_are_provided")
        password = text_or_empty(fields, "password")
        default = algorithm if password else algorithm_of(fields.get("password_hash"))
        chosen = fields.get("hashing_algorithm", default)
        if chosen not in ALGORITHMS:
            raise bad_request(["unknown_hashing_algorithm", chosen])
        new_tags: list[Value] = list(tags(fields["tags"]))
        return cls(name, new_tags, chosen, password, "" if password else _password_hash(fields, chosen))

    def hashed(self) -> tuple[str, str]:
        """Return the hash and the SCRAM credential of the password. This is slow: call it on another thread."""
        return hash_password(self.password, self.algorithm), kept_credential(self.password, "", None)


def text_or_empty(fields: Fields, name: str) -> str:
    """Return a string field of valid characters; empty if it is missing."""
    value = fields.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise bad_request(["not_string", name])
    try:
        value.encode()
    except UnicodeEncodeError:
        raise bad_request(["not_unicode", name]) from None
    return value


def _password_hash(fields: Fields, algorithm: str) -> str:
    given = fields.get("password_hash", "")
    if not isinstance(given, str):
        raise bad_request(["not_base64", given])
    if algorithm != ARGON2ID:
        base64(given)
    elif given and not is_password_hash(given, ARGON2ID):
        raise bad_request(
            "password_hash must have the form $argon2id$v=19$m=...,t=...,p=...$salt$hash within the cost limits"
        )
    return given


def _put(directory: Directory, update: UserUpdate, hashed: str, credential: str) -> Reply:
    """Store the user and keep its limits; the SCRAM credential is kept if the password has not changed."""
    known = directory.user(update.name)
    directory.put_user(_record(directory, update, hashed, credential or kept_credential(None, hashed, known)))
    return put_reply(known is not None)


def _record(directory: Directory, update: UserUpdate, hashed: str, credential: str) -> UserRecord:
    known = directory.user(update.name)
    limits = known.limits if known is not None else {}
    return UserRecord(update.name, hashed, update.algorithm, update.tags, limits, credential)


def _listing(users: list[UserRecord]) -> Listing[UserRecord]:
    return Listing(users, user_view, lambda user: ("", user.name))


def _existing(call: Call, name: str) -> UserRecord:
    user = call.broker.directory.user(name)
    if user is None:
        raise missing()
    return user
