"""/auth/cache: answers of other servers about logins and permissions, which plugins keep."""

from gateway.kernel.errors import NotAllowed
from gateway.management.http.access_levels import AccessLevel
from gateway.management.http.call import Call
from gateway.management.http.errors import missing
from gateway.management.http.routes import Routes

routes = Routes()


@routes.delete("/auth/cache", level=AccessLevel.ADMINISTRATOR)
def forget_everywhere(call: Call) -> None:
    """Drop the answers that the plugins of all virtual hosts keep."""
    for vhost in list(call.broker.vhost_by_name):
        _forget(call, vhost)


@routes.delete("/auth/cache/<vhost>", level=AccessLevel.ADMINISTRATOR)
def forget(call: Call, vhost: str) -> None:
    """Drop the answers that the plugins of a virtual host keep."""
    _require_vhost(call, vhost)
    _forget(call, vhost)


def _require_vhost(call: Call, name: str) -> None:
    try:
        call.broker.vhost(name)
    except NotAllowed:
        raise missing() from None


def _forget(call: Call, vhost: str) -> None:
    call.context.access_of(vhost).forget()
    call.broker.permissions_changed(vhost)
