"""/federation-links: the status of federation links, with RabbitMQ's fields."""

from gateway.management.http.access_levels import AccessLevel
from gateway.management.http.call import Call
from gateway.management.http.errors import missing
from gateway.management.http.listing import Listing
from gateway.management.http.routes import Fields, Routes

routes = Routes()


@routes.get("/federation-links", level=AccessLevel.MONITORING)
def federation_links(call: Call) -> Listing[Fields]:
    """List the links of all virtual hosts."""
    return _listing(call)


@routes.get("/federation-links/<vhost>", level=AccessLevel.MONITORING)
def in_vhost(call: Call, vhost: str) -> Listing[Fields]:
    """List the links of a virtual host."""
    call.vhost(vhost)
    return _listing(call, vhost)


@routes.get("/federation-links/state/down", level=AccessLevel.MONITORING)
def down(call: Call) -> Listing[Fields]:
    """List the links of all virtual hosts that are not running."""
    return _listing(call, only_down=True)


@routes.get("/federation-links/state/down/<vhost>", level=AccessLevel.MONITORING)
def down_in_vhost(call: Call, vhost: str) -> Listing[Fields]:
    """List the links of a virtual host that are not running."""
    call.vhost(vhost)
    return _listing(call, vhost, only_down=True)


@routes.delete("/federation-links/vhost/<vhost>/<id>/<node>/restart", level=AccessLevel.POLICYMAKER)
def restart(call: Call, vhost: str, id: str, node: str) -> None:
    """Close the connections of a link and open them again. RabbitMQ has DELETE for it too."""
    call.vhost(vhost)
    if node != call.broker.node or not call.context.bridges.restart_federation_link(vhost, id):
        raise missing()


def _listing(call: Call, vhost: str | None = None, *, only_down: bool = False) -> Listing[Fields]:
    views: list[Fields] = [
        dict(status)
        for status in call.context.bridges.federation_statuses()
        if vhost in (None, status["vhost"]) and not (only_down and status["status"] == "running")
    ]
    return Listing(views, lambda view: view, lambda view: (view["vhost"], view["id"]), is_paged=False)
