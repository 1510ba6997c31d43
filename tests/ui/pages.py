"""The pages of the web UI that the tests visit, each with a text that it shows once its data is there."""

from typing import Final

PAGES: Final = {
    "/": "Listeners",
    "/queues": "orders.audit",
    "/queues/%2F/orders.new": "Messages waiting",
    "/queues/%2F/orders.new?tab=Messages": "Get messages",
    "/queues/%2F/orders.new?tab=Consumers": "worker-orders.new",
    "/queues/%2F/orders.new?tab=Bindings": "order.*.new",
    "/queues/%2F/orders.new?tab=Settings": "operator policy cap",
    "/queues/%2F/events": "Offsets",
    "/exchanges": "orders",
    "/exchanges/%2F/orders": "Who publishes",
    "/exchanges/%2F/orders?tab=Bindings": "To this exchange",
    "/exchanges/%2F/orders?tab=Publish": "Delivery mode",
}
