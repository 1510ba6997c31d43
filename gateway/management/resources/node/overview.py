"""/overview: a summary of the broker; /version and /extensions."""

from gateway.management.http.access_levels import AccessLevel
from gateway.management.http.call import Call
from gateway.management.http.listing import with_columns
from gateway.management.http.routes import Fields, Routes
from gateway.management.statistics.subjects import BROKER
from gateway.management.views.listeners import api_views, listener_views
from gateway.management.views.nodes import ERLANG_VERSION, exchange_types
from gateway.management.views.numbers import DELIVERIES, PUBLISHES, message_totals, with_rates
from gateway.version import RABBITMQ_VERSION, VERSION

routes = Routes()


@routes.get("/overview")
def overview(call: Call) -> Fields:
    """Return a summary of the broker, with the listeners for monitoring users."""
    context, statistics = call.context, call.context.statistics
    broker = call.broker
    counts, churn, trend = statistics.counts(), statistics.churn(), call.trend(BROKER)
    fields: Fields = {
        "management_version": RABBITMQ_VERSION,
        "rates_mode": "detailed",
        "sample_retention_policies": {"global": [600, 3600, 28800, 86400], "basic": [600], "detailed": [600]},
        "exchange_types": exchange_types(context),
        "product_version": VERSION,
        "product_name": "gateway",
        "rabbitmq_version": RABBITMQ_VERSION,
        "cluster_name": cluster_name(call),
        "erlang_version": ERLANG_VERSION,
        "erlang_full_version": f"Erlang/OTP {ERLANG_VERSION}",
        "release_series_support_status": "supported",
        "disable_stats": False,
        "enable_queue_totals": False,
        "message_stats": with_rates((*PUBLISHES, *DELIVERIES, "disk_reads", "disk_writes"), counts, trend),
        "churn_rates": with_rates(churn, churn, trend),
        "queue_totals": message_totals(counts["messages_ready"], counts["messages_unacknowledged"], trend),
        "object_totals": _object_totals(call),
        "statistics_db_event_queue": 0,
        "set_aside": len(broker.store_reports.set_aside),
        "node": broker.node,
    }
    if call.may(AccessLevel.MONITORING):
        fields |= {"listeners": listener_views(context), "contexts": api_views(context)}
    return with_columns(fields, call.query)


@routes.get("/version")
def version(call: Call) -> str:
    """Return the compatible RabbitMQ version."""
    return RABBITMQ_VERSION


@routes.get("/extensions")
def extensions(call: Call) -> list[Fields]:
    """List the scripts of user interface extensions."""
    return [{"javascript": "dispatcher.js"}]


def cluster_name(call: Call) -> str:
    """Return the cluster name if one was set, else that of the settings, or of the node if it runs alone."""
    parameter = call.broker.parameters.get(("", "", "cluster_name"))
    if parameter is not None:
        return str(parameter.value)
    return call.broker.node if call.cluster is None else call.cluster.name


def _object_totals(call: Call) -> Fields:
    vhosts = call.visible_vhosts()
    names = {vhost.name for vhost in vhosts}
    peers = [peer for peer in call.broker.connections if peer.vhost_name in names]
    return {
        "channels": sum(peer.channel_count for peer in peers),
        "connections": len(peers),
        "consumers": sum(vhost.queues.consumer_count for vhost in vhosts),
        "exchanges": sum(len(vhost.exchange_by_name) for vhost in vhosts),
        "queues": sum(len(vhost.queue_by_name) for vhost in vhosts),
    }
