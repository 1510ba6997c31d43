"""/channels: the channels of all connections."""

from collections.abc import Callable

from gateway.kernel.broker.connections import Peer
from gateway.management.http.call import Call
from gateway.management.http.errors import missing
from gateway.management.http.listing import Listing, with_columns
from gateway.management.http.routes import Fields, Routes
from gateway.management.resources.clients.connections import existing_peer, visible_peers
from gateway.management.views.channels import OpenChannel, channel_view, consumer_view
from gateway.management.views.splits import deliveries_of, publishes_of

routes = Routes()


@routes.get("/channels")
def channels(call: Call) -> Listing[OpenChannel]:
    """List the channels that the user may see."""
    return channel_listing(call, lambda peer: True)


@routes.get("/channels/<name>")
def channel(call: Call, name: str) -> Fields:
    """Return a channel; its name is that of the connection with the number in parentheses."""
    connection_name, _, number = name.removesuffix(")").rpartition(" (")
    peer = existing_peer(call, connection_name)
    for info in peer.channels():
        if str(info.number) == number:
            return with_columns(_detailed_view(call, OpenChannel(peer, info)), call.query)
    raise missing()


def channel_listing(call: Call, predicate: Callable[[Peer], bool]) -> Listing[OpenChannel]:
    """List the channels of the connections that match and that the user may see."""
    opened = [OpenChannel(peer, info) for peer in visible_peers(call) if predicate(peer) for info in peer.channels()]
    return Listing(opened, lambda each: channel_view(call, each), lambda each: ("", each.name))


def _detailed_view(call: Call, channel: OpenChannel) -> Fields:
    """Return the view of a channel with its consumers and its traffic by exchange and queue."""
    return channel_view(call, channel) | {
        "consumer_details": [consumer_view(call.context, each) for each in channel.info.consumers],
        "publishes": publishes_of(call, channel),
        "deliveries": deliveries_of(call, channel),
    }
