"""RabbitMQ's metrics of queues, channels and connections, as sums of the node."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from prometheus_client import Metric

from gateway.kernel.broker.broker import Broker
from gateway.kernel.counters import Counters
from gateway.management.context import ApiContext
from gateway.management.metrics.family import Family, Reading, counter, gauge, read_all
from gateway.management.metrics.totals import (
    ChannelSums,
    QueueSums,
    Totals,
    deliveries_by_protocol,
    publishes_by_protocol,
)

QUEUES: Final[tuple[Reading[QueueSums], ...]] = (
    Reading(gauge("rabbitmq_queue_messages_ready", "Messages that wait for consumers"), lambda sums: sums.ready),
    Reading(
        gauge("rabbitmq_queue_messages_unacked", "Messages delivered and not acknowledged yet"),
        lambda sums: sums.unacked,
    ),
    Reading(
        gauge("rabbitmq_queue_messages", "Ready and unacknowledged messages"), lambda sums: sums.ready + sums.unacked
    ),
    Reading(gauge("rabbitmq_queue_consumers", "Consumers of queues"), lambda sums: sums.consumers),
    Reading(
        gauge("rabbitmq_queue_messages_bytes", "Size of ready and unacknowledged messages, in bytes"),
        lambda sums: sums.ready_bytes + sums.unacked_bytes,
    ),
    Reading(
        gauge("rabbitmq_queue_messages_ready_bytes", "Size of ready messages, in bytes"), lambda sums: sums.ready_bytes
    ),
    Reading(
        gauge("rabbitmq_queue_messages_unacked_bytes", "Size of unacknowledged messages, in bytes"),
        lambda sums: sums.unacked_bytes,
    ),
)
CHANNELS: Final[tuple[Reading[ChannelSums], ...]] = (
    Reading(gauge("rabbitmq_channel_consumers", "Consumers on channels"), lambda sums: sums.consumers),
    Reading(gauge("rabbitmq_channel_messages_unacked", "Deliveries not acknowledged yet"), lambda sums: sums.unacked),
    Reading(
        gauge("rabbitmq_channel_messages_unconfirmed", "Publishes not confirmed yet"), lambda sums: sums.unconfirmed
    ),
    Reading(
        gauge("rabbitmq_channel_messages_uncommitted", "Publishes of open transactions"), lambda sums: sums.uncommitted
    ),
    Reading(
        gauge("rabbitmq_channel_acks_uncommitted", "Acknowledgements of open transactions"),
        lambda sums: sums.acks_uncommitted,
    ),
    Reading(gauge("rabbitmq_consumer_prefetch", "Sum of the limits for new consumers"), lambda sums: sums.prefetch),
    Reading(gauge("rabbitmq_channel_prefetch", "Sum of the limits of channels"), lambda sums: sums.shared_prefetch),
)


@dataclass(frozen=True, slots=True)
class ChannelTraffic:
    """The messages of all channels, closed ones too."""

    published: int
    confirmed: int
    returned: int
    dropped: int
    delivered: Counters


CHANNEL_TRAFFIC: Final[tuple[Reading[ChannelTraffic], ...]] = (
    Reading(counter("rabbitmq_channel_messages_published_total", "Messages published"), lambda sums: sums.published),
    Reading(counter("rabbitmq_channel_messages_confirmed_total", "Messages confirmed"), lambda sums: sums.confirmed),
    Reading(
        counter("rabbitmq_channel_messages_unroutable_returned_total", "Mandatory messages returned"),
        lambda sums: sums.returned,
    ),
    Reading(
        counter(
            "rabbitmq_channel_messages_unroutable_dropped_total", "Messages that reached no queue and were dropped"
        ),
        lambda sums: sums.dropped,
    ),
    Reading(
        counter("rabbitmq_channel_get_ack_total", "Messages fetched with acknowledgements"),
        lambda sums: sums.delivered.get,
    ),
    Reading(
        counter("rabbitmq_channel_get_total", "Messages fetched without acknowledgements"),
        lambda sums: sums.delivered.get_no_ack,
    ),
    Reading(
        counter("rabbitmq_channel_messages_delivered_ack_total", "Messages delivered with acknowledgements"),
        lambda sums: sums.delivered.deliver,
    ),
    Reading(
        counter("rabbitmq_channel_messages_delivered_total", "Messages delivered without acknowledgements"),
        lambda sums: sums.delivered.deliver_no_ack,
    ),
    Reading(
        counter("rabbitmq_channel_messages_redelivered_total", "Messages delivered again"),
        lambda sums: sums.delivered.redeliver,
    ),
    Reading(counter("rabbitmq_channel_messages_acked_total", "Messages acknowledged"), lambda sums: sums.delivered.ack),
    Reading(
        counter("rabbitmq_channel_get_empty_total", "Fetches from an empty queue"),
        lambda sums: sums.delivered.get_empty,
    ),
)


@dataclass(frozen=True, slots=True)
class WireTraffic:
    """The bytes of all connections at the last sample, and reads from and writes to the store by queues."""

    received: int
    sent: int
    disk_reads: int
    disk_writes: int


WIRE: Final[tuple[Reading[WireTraffic], ...]] = (
    Reading(
        counter("rabbitmq_connection_incoming_bytes_total", "Bytes received from clients"), lambda sums: sums.received
    ),
    Reading(counter("rabbitmq_connection_outgoing_bytes_total", "Bytes sent to clients"), lambda sums: sums.sent),
    Reading(
        counter("rabbitmq_queue_disk_reads_total", "Messages that queues read from the store"),
        lambda sums: sums.disk_reads,
    ),
    Reading(
        counter("rabbitmq_queue_disk_writes_total", "Messages that queues wrote to the store"),
        lambda sums: sums.disk_writes,
    ),
)

QUEUE_PUBLISHED: Final = counter("rabbitmq_queue_messages_published_total", "Messages that queues took")
CONNECTION_CHANNELS: Final = gauge("rabbitmq_connection_channels", "Channels of all connections")

FAMILIES: Final[tuple[Family, ...]] = (
    *(reading.family for reading in QUEUES),
    *(reading.family for reading in CHANNELS),
    *(reading.family for reading in CHANNEL_TRAFFIC),
    *(reading.family for reading in WIRE),
    *(QUEUE_PUBLISHED, CONNECTION_CHANNELS),
)


def sums(context: ApiContext, totals: Totals) -> Iterator[Metric]:
    """Yield the sums of queues, channels and connections."""
    yield from read_all(QUEUES, totals.queues)
    yield from read_all(CHANNELS, totals.channels)
    yield from read_all(CHANNEL_TRAFFIC, _channel_traffic(context.broker))
    yield from read_all(WIRE, _wire_traffic(context))
    departed = context.broker.departed_traffic.departed_total().publish
    yield QUEUE_PUBLISHED.single(departed + sum(counters.publish for counters in totals.counted.values()))
    yield CONNECTION_CHANNELS.single(totals.channels.channels)


def _channel_traffic(broker: Broker) -> ChannelTraffic:
    publishes, delivered = list(publishes_by_protocol(broker).values()), Counters()
    for counters in deliveries_by_protocol(broker).values():
        delivered.add(counters)
    returned = sum(each.returned for each in publishes)
    return ChannelTraffic(
        published=sum(each.published for each in publishes),
        confirmed=sum(each.confirmed + each.confirmed_at_once for each in publishes),
        returned=returned,
        dropped=max(0, sum(each.unroutable for each in publishes) - returned),
        delivered=delivered,
    )


def _wire_traffic(context: ApiContext) -> WireTraffic:
    statistics = context.statistics
    octets = [statistics.octets_of(vhost) for vhost in context.broker.vhost_by_name.values()]
    disk = statistics.disk_counts()
    return WireTraffic(
        received=sum(each["recv_oct"] for each in octets),
        sent=sum(each["send_oct"] for each in octets),
        disk_reads=disk["disk_reads"],
        disk_writes=disk["disk_writes"],
    )
