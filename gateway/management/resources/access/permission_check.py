"""Whether a user may use one queue or exchange. RabbitMQ has no such resource."""

from typing import Final

from gateway.access import Operation, Permissions, Principal
from gateway.kernel.errors import NotAllowed
from gateway.management.http.access_levels import AccessLevel
from gateway.management.http.call import Call
from gateway.management.http.errors import bad_request
from gateway.management.http.routes import Fields, Routes
from gateway.management.resources.virtual_hosts.exchanges import real_name

routes = Routes()

_KINDS: Final = ("queue", "exchange")


@routes.get("/permissions/<vhost>/<user>/check")
def check(call: Call, vhost: str, user: str) -> Fields:
    """Return what a user may do with the queue or exchange that the query names.

    With ``routing_key`` also whether the user may publish and bind with it, by topic permissions. Others than
    administrators ask about themselves only.
    """
    if user != call.principal.name:
        call.require(AccessLevel.ADMINISTRATOR)
    call.vhost(vhost)
    kind, name, routing_key = _asked(call)
    answer: Fields = {"user": user, "vhost": vhost, "kind": kind, "name": name, "routing_key": routing_key}
    try:
        permissions = permissions_of(call, vhost, user)
    except NotAllowed as refusal:
        return answer | {"enters": False, "reason": str(refusal), "operations": {}, "topic": {}}
    operations = {each.name.lower(): permissions.may(each, name, kind) for each in Operation}
    topic = {}
    if routing_key is not None and kind == "exchange":
        topic = {
            each.name.lower(): permissions.may_use_topic(each, name, routing_key)
            for each in (Operation.WRITE, Operation.READ)
        }
    return answer | {"enters": True, "reason": "", "operations": operations, "topic": topic}


def permissions_of(call: Call, vhost: str, user: str) -> Permissions:
    """Return the permissions of a user in a virtual host. :raises NotAllowed: if it has none."""
    if user == call.principal.name:
        principal = call.principal
    else:
        record = call.broker.directory.user(user)
        tags = [] if record is None else [tag for tag in record.tags if isinstance(tag, str)]
        principal = Principal(user, frozenset(tags))
    return call.context.access_of(vhost).enter(principal, vhost)


def _asked(call: Call) -> tuple[str, str, str | None]:
    kind, name = call.query.get("kind", "queue"), call.query.get("name", "")
    if kind not in _KINDS:
        raise bad_request(f"kind must be queue or exchange, not '{kind}'")
    return kind, real_name(name) if kind == "exchange" else name, call.query.get("routing_key")
