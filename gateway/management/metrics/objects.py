"""RabbitMQ's metrics of single queues, exchanges, channels and connections, in its groups (*families* of its query).

Each object is read once; the numbers are kept in columns until all objects are read, as the text formats want all
samples of a metric together: eight bytes for each number, and the labels of each object.
"""

from array import array
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from gateway.kernel.broker.connections import ConnectionInfo
from gateway.kernel.counters import Counters
from gateway.kernel.queueing.channel_counters import PublishCounters
from gateway.kernel.queueing.queue_like import QueueLike
from gateway.kernel.routing.exchange import Exchange
from gateway.kernel.vhosts.queue_stats import QueueStats, stats_of
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.management.context import ApiContext
from gateway.management.metrics.exposition import Exposition, label_text
from gateway.management.metrics.family import Family, Reading, counter, gauge
from gateway.management.views.channels import OpenChannel
from gateway.management.views.queues import estimated_memory

Objects: TypeAlias = Iterator[tuple[Mapping[str, str], Any] | None]
"""The labels of each object and the object, of the type that the group reads; ``None`` after a step without one."""

#: Objects read between two steps.
_STEP: Final = 32

_QUEUE: Final = ("vhost", "queue")
_EXCHANGE: Final = ("vhost", "exchange")


@dataclass(frozen=True, slots=True)
class ObjectGroup:
    """The metrics of one kind of object. ``objects`` yields those in the given virtual hosts."""

    name: str
    readings: tuple[Reading[Any], ...]
    objects: Callable[[ApiContext, Collection[VirtualHost]], Objects]

    def pieces(
        self, exposition: Exposition, context: ApiContext, vhosts: Collection[VirtualHost], prefix: str
    ) -> Iterator[bytes]:
        """Read the objects and encode their metrics, whose names begin with ``prefix``; an empty piece ends a step."""
        labels: list[str] = []
        columns = [array("d") for _ in self.readings]
        reads = [reading.read for reading in self.readings]
        for number, found in enumerate(self.objects(context, vhosts)):
            if found is not None:
                names, item = found
                labels.append(label_text(names))
                for column, read in zip(columns, reads, strict=True):
                    column.append(read(item))
            if found is None or number % _STEP == 0:
                yield b""
        for reading, column in zip(self.readings, columns, strict=True):
            family = reading.family
            name = prefix + family.name.removeprefix("rabbitmq_")
            yield from exposition.lines(family.renamed(name), zip(labels, column, strict=True))


# -- Queues -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MeasuredQueue:
    """A queue with the statistics that are computed on request."""

    queue: QueueLike
    stats: QueueStats
    capacity: float

    @property
    def memory(self) -> int:
        """The estimated memory of the queue, in bytes."""
        return estimated_memory(self.stats)


def _queues(context: ApiContext, vhosts: Collection[VirtualHost]) -> Iterator[tuple[Mapping[str, str], QueueLike]]:
    for vhost in vhosts:
        for queue in list(vhost.queue_by_name.values()):
            if not queue.is_deleted:
                yield {"vhost": vhost.name, "queue": queue.name}, queue


def _measured_queues(context: ApiContext, vhosts: Collection[VirtualHost]) -> Objects:
    for labels, queue in _queues(context, vhosts):
        yield labels, MeasuredQueue(queue, stats_of(queue), context.statistics.capacity(queue))
        yield None


QUEUE_COARSE: Final = (
    Reading[QueueLike](gauge("rabbitmq_queue_messages_ready", "Messages that wait for consumers", *_QUEUE), len),
    Reading[QueueLike](
        gauge("rabbitmq_queue_messages_unacked", "Messages delivered and not acknowledged yet", *_QUEUE),
        lambda queue: queue.unsettled,
    ),
    Reading[QueueLike](
        gauge("rabbitmq_queue_messages", "Ready and unacknowledged messages", *_QUEUE),
        lambda queue: len(queue) + queue.unsettled,
    ),
)
_CONSUMERS: Final = gauge("rabbitmq_queue_consumers", "Consumers of the queue", *_QUEUE)
QUEUE_CONSUMERS: Final = (Reading[QueueLike](_CONSUMERS, lambda queue: len(queue.consumers)),)


def _measured(name: str, help: str, read: Callable[[MeasuredQueue], float]) -> Reading[MeasuredQueue]:
    family = counter if name.endswith("_total") else gauge
    return Reading(family(f"rabbitmq_queue_{name}", help, *_QUEUE), read)


QUEUE_METRICS: Final = (
    Reading[MeasuredQueue](_CONSUMERS, lambda each: len(each.queue.consumers)),
    _measured("consumer_capacity", "Share of samples in which a consumer could take more", lambda each: each.capacity),
    _measured("consumer_utilisation", "The same as the consumer capacity", lambda each: each.capacity),
    _measured("process_memory_bytes", "Estimated memory of the queue, in bytes", lambda each: each.memory),
    _measured("messages_ram", "Messages in memory", lambda each: each.stats.in_memory.count),
    _measured("messages_ram_bytes", "Size of messages in memory", lambda each: each.stats.in_memory.bytes),
    _measured("messages_ready_ram", "Ready messages in memory", lambda each: each.stats.ready_in_memory.count),
    _measured("messages_unacked_ram", "Unacknowledged messages in memory", lambda each: each.stats.unsettled.count),
    _measured("messages_persistent", "Messages that survive a restart", lambda each: each.stats.persistent.count),
    _measured("messages_persistent_bytes", "Size of persistent messages", lambda each: each.stats.persistent.bytes),
    _measured("messages_bytes", "Size of ready and unacknowledged messages", lambda each: each.stats.all.bytes),
    _measured("messages_ready_bytes", "Size of ready messages", lambda each: each.stats.ready.bytes),
    _measured("messages_unacked_bytes", "Size of unacknowledged messages", lambda each: each.stats.unsettled.bytes),
    _measured("messages_paged_out", "Messages only on disk", lambda each: each.stats.paged_out.count),
    _measured("messages_paged_out_bytes", "Size of messages only on disk", lambda each: each.stats.paged_out.bytes),
    _measured("disk_reads_total", "Messages read from the store", lambda each: each.queue.disk_reads),
    _measured("disk_writes_total", "Messages written to the store", lambda each: each.queue.disk_writes),
    _measured("messages_delayed", "Delayed messages (not in RabbitMQ)", lambda each: each.queue.delayed_count),
)


def _counted(name: str, help: str, read: Callable[[Counters], float]) -> Reading[QueueLike]:
    return Reading(counter(f"rabbitmq_queue_{name}_total", help, *_QUEUE), lambda queue: read(queue.counters))


#: Counters of deliveries, of a queue and of a queue on a channel: name, help and value.
_DELIVERIES: Final[tuple[tuple[str, str, Callable[[Counters], float]], ...]] = (
    ("get_ack", "Messages fetched with acknowledgements", lambda counters: counters.get),
    ("get", "Messages fetched without acknowledgements", lambda counters: counters.get_no_ack),
    ("messages_delivered_ack", "Messages delivered with acknowledgements", lambda counters: counters.deliver),
    ("messages_delivered", "Messages delivered without acknowledgements", lambda counters: counters.deliver_no_ack),
    ("messages_redelivered", "Messages delivered again", lambda counters: counters.redeliver),
    ("messages_acked", "Messages acknowledged", lambda counters: counters.ack),
    ("get_empty", "Fetches from the empty queue", lambda counters: counters.get_empty),
)
QUEUE_DELIVERIES: Final = tuple(_counted(*row) for row in _DELIVERIES)

# -- Exchanges --------------------------------------------------------------------------------------------------------


def _exchanges(context: ApiContext, vhosts: Collection[VirtualHost]) -> Objects:
    for vhost in vhosts:
        for exchange in list(vhost.exchange_by_name.values()):
            yield {"vhost": vhost.name, "exchange": exchange.name}, exchange


def _routes(context: ApiContext, vhosts: Collection[VirtualHost]) -> Objects:
    for vhost in vhosts:
        for exchange in list(vhost.exchange_by_name.values()):
            for each in exchange.passed_on():
                if each is None:
                    yield None
                else:
                    yield {"vhost": vhost.name, "exchange": exchange.name, "queue": each[0].name}, each[1]


EXCHANGES: Final = (
    Reading[Exchange](
        counter("rabbitmq_exchange_messages_published_total", "Messages published to the exchange", *_EXCHANGE),
        lambda exchange: exchange.published_in,
    ),
    Reading[Exchange](
        counter("rabbitmq_exchange_messages_routed_total", "Messages routed to queues (not in RabbitMQ)", *_EXCHANGE),
        lambda exchange: exchange.published_out,
    ),
)
QUEUE_EXCHANGES: Final = (
    Reading[int](
        counter(
            "rabbitmq_queue_exchange_messages_published_total",
            "Messages routed from the exchange to the queue",
            *("vhost", "exchange", "queue"),
        ),
        lambda count: count,
    ),
)

# -- Channels ---------------------------------------------------------------------------------------------------------


def _channels(context: ApiContext, vhosts: Collection[VirtualHost]) -> Objects:
    for peer in context.broker.connections:
        for info in peer.channels():
            channel = OpenChannel(peer, info)
            yield {"channel": channel.name}, channel
        yield None


def _channel_exchanges(context: ApiContext, vhosts: Collection[VirtualHost]) -> Objects:
    for found in _channels(context, vhosts):
        if found is None:
            yield None
            continue
        names, channel = found
        for exchange, tally in list(channel.info.publishes.items()):
            confirmed = channel.info.confirmed if len(channel.info.publishes) == 1 else 0
            yield {**names, "vhost": channel.peer.vhost_name, "exchange": exchange}, (tally, confirmed)


def _channel_queues(context: ApiContext, vhosts: Collection[VirtualHost]) -> Objects:
    for found in _channels(context, vhosts):
        if found is None:
            yield None
            continue
        names, channel = found
        for queue, counters in list(channel.info.deliveries.items()):
            yield {**names, "vhost": queue.vhost_name, "queue": queue.name}, counters


def _of_channel(name: str, help: str, read: Callable[[OpenChannel], float]) -> Reading[OpenChannel]:
    return Reading(gauge(f"rabbitmq_{name}", help, "channel"), read)


CHANNELS: Final = (
    _of_channel("channel_consumers", "Consumers on the channel", lambda channel: len(channel.info.consumers)),
    _of_channel("channel_messages_unacked", "Deliveries not acknowledged yet", lambda c: c.info.unacknowledged),
    _of_channel("channel_messages_unconfirmed", "Publishes not confirmed yet", lambda c: c.info.unconfirmed),
    _of_channel("channel_messages_uncommitted", "Publishes of the open transaction", lambda c: c.info.uncommitted),
    _of_channel("channel_acks_uncommitted", "Acknowledgements of the transaction", lambda c: c.info.acks_uncommitted),
    _of_channel("consumer_prefetch", "Limit of each new consumer", lambda channel: channel.info.prefetch),
    _of_channel("channel_prefetch", "Limit of all consumers together", lambda channel: channel.info.shared_prefetch),
)

_Published: TypeAlias = tuple[PublishCounters, int]


def _of_publishes(name: str, help: str, read: Callable[[_Published], float]) -> Reading[_Published]:
    return Reading(counter(f"rabbitmq_channel_messages_{name}_total", help, "channel", *_EXCHANGE), read)


CHANNEL_EXCHANGES: Final = (
    _of_publishes("published", "Messages published to the exchange", lambda each: each[0].publish),
    _of_publishes("confirmed", "Messages confirmed, if the channel has one exchange", lambda each: each[1]),
    _of_publishes("unroutable_returned", "Mandatory messages returned", lambda each: each[0].return_unroutable),
    _of_publishes("unroutable_dropped", "Messages without a queue", lambda each: each[0].drop_unroutable),
)


def _of_deliveries(name: str, help: str, read: Callable[[Counters], float]) -> Reading[Counters]:
    return Reading(counter(f"rabbitmq_channel_{name}_total", help, "channel", *_QUEUE), read)


CHANNEL_QUEUES: Final = tuple(_of_deliveries(*row) for row in _DELIVERIES)

# -- Connections ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MeasuredConnection:
    """A connection as listings show it."""

    info: ConnectionInfo
    channels: int


def _connections(context: ApiContext, vhosts: Collection[VirtualHost]) -> Objects:
    for peer in context.broker.connections:
        yield {"connection": peer.name}, MeasuredConnection(peer.info(), peer.channel_count)


def _of_connection(name: str, help: str, read: Callable[[MeasuredConnection], float]) -> Reading[MeasuredConnection]:
    family = counter if name.endswith("_total") else gauge
    return Reading(family(f"rabbitmq_connection_{name}", help, "connection"), read)


CONNECTION_COARSE: Final = (
    _of_connection("incoming_bytes_total", "Bytes received", lambda each: each.info.received[0]),
    _of_connection("outgoing_bytes_total", "Bytes sent", lambda each: each.info.sent[0]),
)
CONNECTION_METRICS: Final = (
    _of_connection("incoming_packets_total", "Reads from the connection", lambda each: each.info.received[1]),
    _of_connection("outgoing_packets_total", "Writes to the connection", lambda each: each.info.sent[1]),
    _of_connection("pending_packets", "Bytes that wait to be sent", lambda each: each.info.pending),
    _of_connection("channels", "Channels of the connection", lambda each: each.channels),
)

#: The groups, in the order of a scrape.
GROUPS: Final[tuple[ObjectGroup, ...]] = (
    ObjectGroup("queue_coarse_metrics", QUEUE_COARSE, _queues),
    ObjectGroup("queue_consumer_count", QUEUE_CONSUMERS, _queues),
    ObjectGroup("queue_metrics", QUEUE_METRICS, _measured_queues),
    ObjectGroup("queue_delivery_metrics", QUEUE_DELIVERIES, _queues),
    ObjectGroup("exchange_metrics", EXCHANGES, _exchanges),
    ObjectGroup("queue_exchange_metrics", QUEUE_EXCHANGES, _routes),
    ObjectGroup("channel_metrics", CHANNELS, _channels),
    ObjectGroup("channel_exchange_metrics", CHANNEL_EXCHANGES, _channel_exchanges),
    ObjectGroup("channel_queue_metrics", CHANNEL_QUEUES, _channel_queues),
    ObjectGroup("connection_coarse_metrics", CONNECTION_COARSE, _connections),
    ObjectGroup("connection_metrics", CONNECTION_METRICS, _connections),
)

FAMILIES: Final[tuple[Family, ...]] = tuple(reading.family for group in GROUPS for reading in group.readings)
