"""/stomp: the subscriptions of STOMP clients. RabbitMQ lists them among all consumers only."""

from gateway.kernel.queueing.consumer import Consumer
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.management.http.call import Call
from gateway.management.http.listing import Listing
from gateway.management.http.routes import Fields, Routes
from gateway.management.resources.clients.consumers import consumers_in
from gateway.management.views.channels import consumer_view

routes = Routes()

_PROTOCOL = "STOMP"


@routes.get("/stomp/subscriptions")
def subscriptions(call: Call) -> Listing[Consumer]:
    """List the subscriptions in all virtual hosts that the user may see."""
    return _listing(call, call.visible_vhosts())


@routes.get("/stomp/subscriptions/<vhost>")
def in_vhost(call: Call, vhost: str) -> Listing[Consumer]:
    """List the subscriptions in a virtual host."""
    return _listing(call, [call.vhost(vhost)])


def _listing(call: Call, vhosts: list[VirtualHost]) -> Listing[Consumer]:
    return Listing(
        consumers_in(vhosts),
        lambda consumer: _view(call, consumer),
        lambda consumer: (consumer.queue.vhost_name, consumer.queue.name),
        is_visible=lambda consumer: consumer.subscriber.origin.protocol.startswith(_PROTOCOL),
    )


def _view(call: Call, consumer: Consumer) -> Fields:
    origin, queue = consumer.subscriber.origin, consumer.queue
    return consumer_view(call.context, consumer) | {
        "name": queue.name,
        "vhost": queue.vhost_name,
        "protocol": origin.protocol,
        "user": origin.user,
    }
