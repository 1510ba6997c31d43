"""/user-limits: the limits of users."""

from collections.abc import Mapping
from dataclasses import replace

from gateway.kernel.journal.records.access import UserRecord
from gateway.kernel.messages.message import Value
from gateway.kernel.settings.limits import USER_LIMITS
from gateway.management.http.access_levels import AccessLevel
from gateway.management.http.bodies import require
from gateway.management.http.call import Call
from gateway.management.http.errors import bad_request, missing
from gateway.management.http.routes import Fields, Routes

routes = Routes()


@routes.get("/user-limits")
def limits(call: Call) -> list[Fields]:
    """List the limits of all users."""
    users = sorted(call.broker.directory.user_by_name.items())
    return [_view(user) for _, user in users if user.limits]


@routes.get("/user-limits/<name>")
def limits_of(call: Call, name: str) -> list[Fields]:
    """List the limits of a user."""
    user = call.broker.directory.user(name)
    if user is None:
        raise missing()
    return [_view(user)] if user.limits else []


@routes.put("/user-limits/<name>/<limit>", level=AccessLevel.ADMINISTRATOR)
def put_limit(call: Call, name: str, limit: str) -> None:
    """Set a limit; a negative value is no limit."""
    (value,) = require(call.fields, "value")
    user = _existing(call, name)
    if limit not in USER_LIMITS:
        raise bad_request(f'Unrecognised terms [{{<<"{limit}">>,{value}}}] in user-limits')
    if isinstance(value, bool) or not isinstance(value, int):
        raise bad_request(f'{limit} should be a number, actually was <<"{value}">>')
    _limit(call, user, {**user.limits, limit: value})


@routes.delete("/user-limits/<name>/<limit>", level=AccessLevel.ADMINISTRATOR)
def delete_limit(call: Call, name: str, limit: str) -> None:
    """Remove a limit."""
    user = _existing(call, name)
    _limit(call, user, {key: value for key, value in user.limits.items() if key != limit})


def _existing(call: Call, name: str) -> UserRecord:
    user = call.broker.directory.user(name)
    if user is None:
        raise bad_request(["no_such_user", name])
    return user


def _limit(call: Call, user: UserRecord, limits: Mapping[str, Value]) -> None:
    call.broker.directory.put_user(replace(user, limits=dict(limits)))


def _view(user: UserRecord) -> Fields:
    return {"user": user.name, "value": dict(user.limits)}
