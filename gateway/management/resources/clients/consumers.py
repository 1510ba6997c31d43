"""/consumers: the consumers of queues."""

from collections.abc import Iterator

from gateway.kernel.queueing.consumer import Consumer
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.management.http.call import Call
from gateway.management.http.listing import Listing
from gateway.management.http.routes import Routes
from gateway.management.views.channels import consumer_view

routes = Routes()


@routes.get("/consumers")
def consumers(call: Call) -> Listing[Consumer]:
    """List the consumers in all virtual hosts that the user may see."""
    return _listing(call, call.visible_vhosts())


@routes.get("/consumers/<vhost>")
def in_vhost(call: Call, vhost: str) -> Listing[Consumer]:
    """List the consumers in a virtual host."""
    return _listing(call, [call.vhost(vhost)])


def consumers_in(vhosts: list[VirtualHost]) -> Iterator[Consumer | None]:
    """Yield the consumers in some virtual hosts; ``None`` after each queue, as most may have none."""
    for vhost in vhosts:
        for queue in list(vhost.queue_by_name.values()):
            yield from list(queue.consumers)
            yield None


def _listing(call: Call, vhosts: list[VirtualHost]) -> Listing[Consumer]:
    return Listing(
        consumers_in(vhosts),
        lambda consumer: consumer_view(call.context, consumer),
        lambda consumer: (consumer.queue.vhost_name, consumer.queue.name),
        is_paged=False,
    )
