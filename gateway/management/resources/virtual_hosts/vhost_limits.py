"""/vhost-limits: the limits of virtual hosts."""

from gateway.kernel.settings.limits import VHOST_LIMITS
from gateway.management.http.access_levels import AccessLevel
from gateway.management.http.bodies import require
from gateway.management.http.call import Call
from gateway.management.http.errors import bad_request, missing, unknown_vhost
from gateway.management.http.routes import Fields, Routes

routes = Routes()


@routes.get("/vhost-limits")
def limits(call: Call) -> list[Fields]:
    """List the limits of all virtual hosts that the user may see."""
    return [_view(vhost.name, vhost.record.limits) for vhost in call.visible_vhosts() if vhost.record.limits]


@routes.get("/vhost-limits/<name>")
def limits_of(call: Call, name: str) -> list[Fields]:
    """List the limits of a virtual host."""
    record = call.vhost(name).record
    return [_view(name, record.limits)] if record.limits else []


@routes.put("/vhost-limits/<name>/<limit>", level=AccessLevel.ADMINISTRATOR)
def put_limit(call: Call, name: str, limit: str) -> None:
    """Set a limit; a negative value is no limit."""
    (value,) = require(call.fields, "value")
    if name not in call.broker.vhost_by_name:
        raise unknown_vhost()
    added = checked_limits({limit: value})
    call.broker.limit_vhost(name, {**call.broker.vhost(name).record.limits, **added})


@routes.delete("/vhost-limits/<name>/<limit>", level=AccessLevel.ADMINISTRATOR)
def delete_limit(call: Call, name: str, limit: str) -> None:
    """Remove a limit."""
    if name not in call.broker.vhost_by_name:
        raise missing()
    limits = call.broker.vhost(name).record.limits
    call.broker.limit_vhost(name, {key: value for key, value in limits.items() if key != limit})


def checked_limits(limits: object) -> dict[str, int]:
    """Check limits and return them. :raises HttpError: if they are invalid, with RabbitMQ's text."""
    if not isinstance(limits, dict):
        raise bad_request("Validation failed\n\nlimits should be an object\n")
    for name, value in limits.items():
        if name not in VHOST_LIMITS:
            raise bad_request(f'Validation failed\n\nUnrecognised terms [{{<<"{name}">>,{value}}}] in limits\n')
        if not _is_number(value):
            raise bad_request(f'Validation failed\n\n{name} should be a number, actually was <<"{value}">>\n')
    return limits


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _view(name: str, limits: object) -> Fields:
    return {"vhost": name, "value": limits}
