"""/node-limits: the limits that apply where a virtual host or a user has none of its own."""

from gateway.management.http.call import Call
from gateway.management.http.routes import Fields, Routes

routes = Routes()


@routes.get("/node-limits")
def limits(call: Call) -> Fields:
    """Return the limits of the node by the names of their settings (``limits``); 0 is no limit."""
    broker = call.broker
    connections, queues, users = broker.connections.limits, broker.queue_rules, broker.user_tallies
    return {
        "connections_per_vhost": connections.per_vhost,
        "connections_per_user": connections.per_user,
        "channels_per_user": connections.channels_per_user,
        "queues_per_vhost": queues.max_queues,
        "bindings_per_vhost": queues.max_bindings,
        "consumers_per_vhost": queues.max_consumers,
        "queues_per_user": users.queues.default,
        "bindings_per_user": users.bindings.default,
        "consumers_per_user": users.consumers.default,
        "consumers_per_channel": queues.max_consumers_per_channel,
        "exclusive_queues_per_connection": queues.max_exclusive_queues,
        "unauthenticated_connections": connections.unauthenticated,
    }
