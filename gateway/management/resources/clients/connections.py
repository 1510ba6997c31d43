"""/connections: the connections, and closing them."""

from collections.abc import Callable

from gateway.kernel.broker.connections import Peer
from gateway.management.http.access_levels import AccessLevel
from gateway.management.http.call import Call
from gateway.management.http.errors import bad_request, forbidden, missing
from gateway.management.http.listing import Listing, with_columns
from gateway.management.http.routes import Fields, Routes
from gateway.management.views.channels import OpenChannel, channel_view, connection_view

routes = Routes()

_DEFAULT_REASON = "Closed via management plugin"


@routes.get("/connections")
def connections(call: Call) -> Listing[Peer]:
    """List the connections that the user may see."""
    return connection_listing(call, lambda peer: True)


@routes.get("/connections/username/<user>")
def of_user(call: Call, user: str) -> Listing[Peer]:
    """List the connections of one user."""
    view = _short_view(call)
    chosen = [peer for peer in visible_peers(call) if peer.user_name == user]
    return Listing(chosen, view, lambda peer: ("", peer.name), is_paged=False)


@routes.delete("/connections/username/<user>")
def close_all(call: Call, user: str) -> None:
    """Close the connections of one user."""
    for peer in call.broker.connections:
        if peer.user_name == user:
            _close(call, peer)


@routes.get("/connections/<name>")
def connection(call: Call, name: str) -> Fields:
    """Return a connection."""
    view = connection_view(call, existing_peer(call, name))
    return with_columns({key: "" if value is None else value for key, value in view.items()}, call.query)


@routes.delete("/connections/<name>")
def close(call: Call, name: str) -> None:
    """Close a connection and send the client the reason."""
    _close(call, existing_peer(call, name))


@routes.get("/connections/<name>/channels")
def channels(call: Call, name: str) -> Listing[OpenChannel]:
    """List the channels of a connection."""
    peer = existing_peer(call, name)
    opened = [OpenChannel(peer, info) for info in peer.channels()]
    return Listing(opened, lambda each: channel_view(call, each), lambda each: ("", each.name))


@routes.get("/connections/<name>/sessions")
def sessions(call: Call, name: str) -> None:
    """Refuse the sessions of a connection, which only AMQP 1.0 has."""
    existing_peer(call, name)
    raise bad_request("connection does not use AMQP 1.0")


def connection_listing(call: Call, predicate: Callable[[Peer], bool]) -> Listing[Peer]:
    """List the connections that match and that the user may see."""
    chosen = [peer for peer in visible_peers(call) if predicate(peer)]
    return Listing(chosen, lambda peer: connection_view(call, peer), lambda peer: ("", peer.name))


def visible_peers(call: Call) -> list[Peer]:
    """Return the connections that the user may see: all for monitoring users, else their own."""
    return [peer for peer in call.broker.connections if peer.vhost_name and _may_see(call, peer)]


def existing_peer(call: Call, name: str) -> Peer:
    """Return the connection with this name. :raises HttpError: if it does not exist or is not visible to the user."""
    for peer in call.broker.connections:
        if peer.name == name and peer.vhost_name:
            if not _may_see(call, peer):
                raise forbidden("User not authorised to access object")
            return peer
    raise missing()


def _may_see(call: Call, peer: Peer) -> bool:
    return peer.user_name == call.principal.name or call.may(AccessLevel.MONITORING)


def _close(call: Call, peer: Peer) -> None:
    """Close a connection; only administrators may close those of other users."""
    if peer.user_name != call.principal.name:
        call.require(AccessLevel.ADMINISTRATOR)
    peer.force_close(call.headers.get("x-reason") or _DEFAULT_REASON)


def _short_view(call: Call) -> Callable[[Peer], Fields]:
    return lambda peer: {
        "name": peer.name,
        "vhost": peer.vhost_name,
        "user": peer.user_name,
        "node": call.broker.node,
    }
