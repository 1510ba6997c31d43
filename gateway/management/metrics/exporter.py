"""The names of the program rabbitmq_exporter (kbudde), for dashboards and alerts that were written for it.

Some of its names are RabbitMQ's own with other labels, so they have a path of their own.
"""

from collections.abc import Callable, Collection, Iterator
from typing import Final

from prometheus_client import Metric

from gateway.kernel.alarms import Resource
from gateway.kernel.queueing.queue_like import QueueLike
from gateway.kernel.routing.exchange import Exchange
from gateway.kernel.vhosts.queue_stats import stats_of
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.management.context import ApiContext
from gateway.management.metrics.family import Family, Reading, counter, gauge
from gateway.management.metrics.node_metrics import NodeReadings, cluster_name, files_limit, node_readings
from gateway.management.metrics.objects import MeasuredConnection, MeasuredQueue, ObjectGroup, Objects
from gateway.management.metrics.totals import Totals
from gateway.management.views.nodes import ERLANG_VERSION, uptime_ms
from gateway.version import RABBITMQ_VERSION

#: "self" tells whether the object belongs to the node that was asked: always, as there is one node.
_SELF: Final = "1"
_QUEUE: Final = ("cluster", "vhost", "queue", "durable", "policy", "self")
_NODE: Final = ("cluster", "node", "self")
_CONNECTION: Final = ("cluster", "vhost", "node", "peer_host", "user", "self", "connection")

UP: Final = gauge("rabbitmq_up", "1: the broker answers")
VERSION: Final = gauge("rabbitmq_version_info", "Versions; always 1", "rabbitmq", "erlang", "node", "cluster")
ALIVENESS: Final = gauge("rabbitmq_aliveness_test", "1 while no alarm is raised", "vhost")
_TOTALS: Final[tuple[Reading[Totals], ...]] = (
    Reading(gauge("rabbitmq_channels", "Channels", "cluster"), lambda totals: totals.channels.channels),
    Reading(gauge("rabbitmq_connections", "Connections", "cluster"), lambda t: sum(t.connections.values())),
    Reading(gauge("rabbitmq_consumers", "Consumers", "cluster"), lambda totals: totals.queues.consumers),
    Reading(gauge("rabbitmq_queues", "Queues", "cluster"), lambda totals: totals.queues.queues),
    Reading(gauge("rabbitmq_exchanges", "Exchanges", "cluster"), lambda totals: totals.exchanges),
    Reading(
        gauge("rabbitmq_queue_messages_global", "Ready and unacknowledged messages", "cluster"),
        lambda totals: totals.queues.ready + totals.queues.unacked,
    ),
    Reading(gauge("rabbitmq_queue_messages_ready_global", "Ready messages", "cluster"), lambda t: t.queues.ready),
    Reading(
        gauge("rabbitmq_queue_messages_unacknowledged_global", "Unacknowledged messages", "cluster"),
        lambda totals: totals.queues.unacked,
    ),
)


def _node(name: str, help: str, read: Callable[[NodeReadings], float]) -> Reading[NodeReadings]:
    return Reading(gauge(f"rabbitmq_{name}", help, *_NODE), read)


_NODES: Final[tuple[Reading[NodeReadings], ...]] = (
    _node("running", "1: the node runs", lambda node: 1),
    _node("uptime", "Time since the start, in milliseconds", lambda node: uptime_ms(node.context)),
    _node("node_mem_used", "Memory, in bytes", lambda node: node.count("mem_used")),
    _node("node_mem_limit", "Limit of the memory, in bytes", lambda node: node.context.memory_limit),
    _node("node_mem_alarm", "1 while the memory alarm is raised", lambda node: _has_alarm(node, Resource.MEMORY)),
    _node("node_disk_free", "Free disk space, in bytes", lambda node: node.count("disk_free")),
    _node("node_disk_free_limit", "Limit of the free disk space, in bytes", lambda node: node.context.disk_free_limit),
    _node("node_disk_free_alarm", "1 while the disk alarm is raised", lambda node: _has_alarm(node, Resource.DISK)),
    _node("fd_used", "Open files", lambda node: node.count("fd_used")),
    _node("fd_available", "Limit of open files", lambda node: files_limit()),
    _node("sockets_used", "Sockets of clients", lambda node: node.count("sockets_used")),
    _node("sockets_available", "Limit of sockets", lambda node: files_limit()),
    _node("partitions", "Always 0: there is one node", lambda node: 0),
)


def _of_queue(name: str, help: str, read: Callable[[MeasuredQueue], float]) -> Reading[MeasuredQueue]:
    family = counter if name.endswith("_total") else gauge
    return Reading(family(f"rabbitmq_queue_{name}", help, *_QUEUE), read)


_QUEUES: Final = (
    _of_queue("messages_ready", "Ready messages", lambda each: each.stats.ready.count),
    _of_queue("messages_unacknowledged", "Unacknowledged messages", lambda each: each.stats.unsettled.count),
    _of_queue("messages", "Ready and unacknowledged messages", lambda each: each.stats.all.count),
    _of_queue("messages_ready_ram", "Ready messages in memory", lambda each: each.stats.ready_in_memory.count),
    _of_queue("messages_unacknowledged_ram", "Unacknowledged messages in memory", lambda e: e.stats.unsettled.count),
    _of_queue("messages_ram", "Messages in memory", lambda each: each.stats.in_memory.count),
    _of_queue("messages_persistent", "Persistent messages", lambda each: each.stats.persistent.count),
    _of_queue("message_bytes", "Size of all messages", lambda each: each.stats.all.bytes),
    _of_queue("message_bytes_ready", "Size of ready messages", lambda each: each.stats.ready.bytes),
    _of_queue("message_bytes_unacknowledged", "Size of unacknowledged messages", lambda e: e.stats.unsettled.bytes),
    _of_queue("message_bytes_ram", "Size of messages in memory", lambda each: each.stats.in_memory.bytes),
    _of_queue("message_bytes_persistent", "Size of persistent messages", lambda each: each.stats.persistent.bytes),
    _of_queue("consumers", "Consumers", lambda each: len(each.queue.consumers)),
    _of_queue("consumer_utilisation", "Consumer capacity", lambda each: each.capacity),
    _of_queue("memory", "Estimated memory, in bytes", lambda each: each.memory),
    _of_queue("disk_reads_total", "Messages read from the store", lambda each: each.queue.disk_reads),
    _of_queue("disk_writes_total", "Messages written to the store", lambda each: each.queue.disk_writes),
    _of_queue("messages_published_total", "Messages taken", lambda each: each.queue.counters.publish),
    _of_queue("messages_delivered_total", "Deliveries with acknowledgements", lambda e: e.queue.counters.deliver),
    _of_queue("messages_delivered_noack_total", "Deliveries without", lambda e: e.queue.counters.deliver_no_ack),
    _of_queue("messages_get_total", "Fetches with acknowledgements", lambda each: each.queue.counters.get),
    _of_queue("messages_get_noack_total", "Fetches without", lambda each: each.queue.counters.get_no_ack),
    _of_queue("messages_redelivered_total", "Messages delivered again", lambda e: e.queue.counters.redeliver),
    _of_queue("messages_ack_total", "Messages acknowledged", lambda each: each.queue.counters.ack),
)

_EXCHANGE: Final = ("cluster", "vhost", "exchange")
_EXCHANGES: Final = (
    Reading[Exchange](
        counter("rabbitmq_exchange_messages_published_in_total", "Messages published to the exchange", *_EXCHANGE),
        lambda exchange: exchange.published_in,
    ),
    Reading[Exchange](
        counter("rabbitmq_exchange_messages_published_out_total", "Messages routed to queues", *_EXCHANGE),
        lambda exchange: exchange.published_out,
    ),
)


def _of_connection(name: str, help: str, read: Callable[[MeasuredConnection], float]) -> Reading[MeasuredConnection]:
    return Reading(gauge(f"rabbitmq_connection_{name}", help, *_CONNECTION), read)


_CONNECTIONS: Final = (
    _of_connection("channels", "Channels", lambda each: each.channels),
    _of_connection("received_bytes", "Bytes received", lambda each: each.info.received[0]),
    _of_connection("received_packets", "Reads", lambda each: each.info.received[1]),
    _of_connection("send_bytes", "Bytes sent", lambda each: each.info.sent[0]),
    _of_connection("send_packets", "Writes", lambda each: each.info.sent[1]),
    _of_connection("send_pending", "Bytes that wait to be sent", lambda each: each.info.pending),
    _of_connection("status", "1 while the connection is in use", lambda each: each.info.state == "running"),
)


def _has_alarm(node: NodeReadings, resource: Resource) -> bool:
    return resource in node.context.broker.alarms.standing


def _queues(context: ApiContext, vhosts: Collection[VirtualHost]) -> Objects:
    cluster = cluster_name(context)
    for vhost in vhosts:
        for queue in list(vhost.queue_by_name.values()):
            if not queue.is_deleted:
                yield (
                    _queue_labels(cluster, queue),
                    MeasuredQueue(queue, stats_of(queue), context.statistics.capacity(queue)),
                )
            yield None


def _queue_labels(cluster: str, queue: QueueLike) -> dict[str, str]:
    policy = queue.settings.policy
    return {
        "cluster": cluster,
        "vhost": queue.vhost_name,
        "queue": queue.name,
        "durable": str(queue.is_durable).lower(),
        "policy": policy.name if policy is not None else "",
        "self": _SELF,
    }


def _exchanges(context: ApiContext, vhosts: Collection[VirtualHost]) -> Objects:
    cluster = cluster_name(context)
    for vhost in vhosts:
        for exchange in list(vhost.exchange_by_name.values()):
            yield {"cluster": cluster, "vhost": vhost.name, "exchange": exchange.name}, exchange


def _connections(context: ApiContext, vhosts: Collection[VirtualHost]) -> Objects:
    cluster, node = cluster_name(context), context.broker.node
    for peer in context.broker.connections:
        labels = {
            "cluster": cluster,
            "vhost": peer.vhost_name,
            "node": node,
            "peer_host": peer.info().peer_host,
            "user": peer.user_name,
            "self": _SELF,
            "connection": peer.name,
        }
        yield labels, MeasuredConnection(peer.info(), peer.channel_count)


GROUPS: Final = (
    ObjectGroup("queue", _QUEUES, _queues),
    ObjectGroup("exchange", _EXCHANGES, _exchanges),
    ObjectGroup("connections", _CONNECTIONS, _connections),
)

FAMILIES: Final[tuple[Family, ...]] = (
    *(UP, VERSION, ALIVENESS),
    *(reading.family for reading in _TOTALS),
    *(reading.family for reading in _NODES),
    *(reading.family for group in GROUPS for reading in group.readings),
)


def overview(context: ApiContext, totals: Totals) -> Iterator[Metric]:
    """Yield what the program shows of the whole broker."""
    broker, cluster = context.broker, cluster_name(context)
    yield UP.single(1)
    yield VERSION.metric([((RABBITMQ_VERSION, ERLANG_VERSION, broker.node, cluster), 1)])
    yield ALIVENESS.metric([((name,), not broker.alarms) for name in broker.vhost_by_name])
    for total in _TOTALS:
        yield total.family.metric([((cluster,), total.read(totals))])
    readings = node_readings(context)
    for reading in _NODES:
        yield reading.family.metric([((cluster, broker.node, _SELF), reading.read(readings))])
