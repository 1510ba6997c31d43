"""/shovels: the status of shovels, with RabbitMQ's fields."""

from gateway.management.http.access_levels import AccessLevel
from gateway.management.http.call import Call
from gateway.management.http.errors import missing
from gateway.management.http.listing import Listing
from gateway.management.http.routes import Fields, Routes

routes = Routes()


@routes.get("/shovels", level=AccessLevel.MONITORING)
def shovels(call: Call) -> Listing[Fields]:
    """List the shovels of all virtual hosts."""
    return _listing([dict(status) for status in call.context.bridges.shovel_statuses()])


@routes.get("/shovels/<vhost>", level=AccessLevel.MONITORING)
def in_vhost(call: Call, vhost: str) -> Listing[Fields]:
    """List the shovels of a virtual host."""
    call.vhost(vhost)
    return _listing(_of(call, vhost))


@routes.get("/shovels/vhost/<vhost>/<name>", level=AccessLevel.MONITORING)
def shovel(call: Call, vhost: str, name: str) -> list[Fields]:
    """Return the status of a shovel: a list with one entry, as RabbitMQ's."""
    call.vhost(vhost)
    for status in _of(call, vhost):
        if status["name"] == name:
            return [status]
    raise missing()


@routes.delete("/shovels/vhost/<vhost>/<name>", level=AccessLevel.POLICYMAKER)
def delete_shovel(call: Call, vhost: str, name: str) -> None:
    """Remove a shovel with its parameter."""
    call.vhost(vhost)
    if not call.context.bridges.delete_shovel(vhost, name):
        raise missing()


@routes.delete("/shovels/vhost/<vhost>/<name>/restart", level=AccessLevel.POLICYMAKER)
def restart_shovel(call: Call, vhost: str, name: str) -> None:
    """Close the connections of a shovel and open them again. RabbitMQ has DELETE for it too."""
    call.vhost(vhost)
    if not call.context.bridges.restart_shovel(vhost, name):
        raise missing()


def _of(call: Call, vhost: str) -> list[Fields]:
    return [dict(status) for status in call.context.bridges.shovel_statuses() if status["vhost"] == vhost]


def _listing(views: list[Fields]) -> Listing[Fields]:
    return Listing(views, lambda view: view, lambda view: (view["vhost"], view["name"]), is_paged=False)
