"""RabbitMQ's global counters: messages by protocol and queue type, body sizes, dead letters."""

from collections.abc import Iterator, Mapping
from typing import Final

from prometheus_client import Metric

from gateway.kernel.broker.broker import Broker
from gateway.kernel.counters import Counters
from gateway.kernel.traffic import QOS0_QUEUE, SIZE_BOUNDS, Traffic, VhostTraffic
from gateway.management.metrics.family import Family, Reading, add_buckets, counter, gauge, histogram
from gateway.management.metrics.totals import (
    PROTOCOLS,
    Totals,
    deliveries_by_protocol,
    publishes_by_protocol,
    queue_type_label,
)

_BY_PROTOCOL: Final = "protocol"
_BY_TYPE: Final = ("protocol", "queue_type")


def _published(name: str, help: str) -> Family:
    return counter(f"rabbitmq_global_messages_{name}_total", help, _BY_PROTOCOL)


def _delivered(name: str, help: str) -> Family:
    return counter(f"rabbitmq_global_messages_{name}_total", help, *_BY_TYPE)


#: By protocol.
PUBLISHES: Final[tuple[Reading[Traffic], ...]] = (
    Reading(_published("received", "Messages received from publishers"), lambda traffic: traffic.published),
    Reading(
        _published("received_confirm", "Messages received from publishers that expect confirms"),
        lambda traffic: traffic.expecting_confirms + traffic.confirmed_at_once,
    ),
    Reading(
        _published("confirmed", "Messages confirmed to publishers"),
        lambda traffic: traffic.confirmed + traffic.confirmed_at_once,
    ),
    Reading(
        _published("routed", "Messages routed to queues and streams, once for each"), lambda traffic: traffic.routed
    ),
    Reading(
        _published("unroutable_dropped", "Messages that reached no queue and were dropped"),
        lambda traffic: max(0, traffic.unroutable - traffic.returned),
    ),
    Reading(
        _published("unroutable_returned", "Mandatory messages that were returned to their publishers"),
        lambda traffic: traffic.returned,
    ),
)

#: By protocol and queue type.
DELIVERIES: Final[tuple[Reading[Counters], ...]] = (
    Reading(
        _delivered("delivered", "Messages delivered to consumers, or fetched"),
        lambda counts: counts.deliver + counts.deliver_no_ack + counts.get + counts.get_no_ack,
    ),
    Reading(
        _delivered("delivered_consume_auto_ack", "Messages delivered to consumers without acknowledgements"),
        lambda counts: counts.deliver_no_ack,
    ),
    Reading(
        _delivered("delivered_consume_manual_ack", "Messages delivered to consumers with acknowledgements"),
        lambda counts: counts.deliver,
    ),
    Reading(
        _delivered("delivered_get_auto_ack", "Messages fetched without acknowledgements"),
        lambda counts: counts.get_no_ack,
    ),
    Reading(_delivered("delivered_get_manual_ack", "Messages fetched with acknowledgements"), lambda c: c.get),
    Reading(_delivered("get_empty", "Fetches from an empty queue"), lambda counts: counts.get_empty),
    Reading(_delivered("redelivered", "Messages delivered again"), lambda counts: counts.redeliver),
    Reading(_delivered("acknowledged", "Messages acknowledged by consumers"), lambda counts: counts.ack),
)

PUBLISHERS: Final = gauge("rabbitmq_global_publishers", "Channels and connections that have published", _BY_PROTOCOL)
CONSUMERS: Final = gauge("rabbitmq_global_consumers", "Consumers", _BY_PROTOCOL)
SIZES: Final = histogram("rabbitmq_message_size_bytes", "Sizes of the bodies of received messages", _BY_PROTOCOL)

#: The reasons of dead letters; the last one counts those that every target queue took.
_REASONS: Final[Mapping[str, str]] = {
    "delivery_limit": "Messages dead-lettered because of the delivery limit",
    "expired": "Messages dead-lettered because of their TTL",
    "maxlen": "Messages dead-lettered because of a length limit",
    "rejected": "Messages dead-lettered because a consumer rejected them",
    "confirmed": "Dead letters that every target queue confirmed; with the strategy at_least_once only",
}
DEAD_LETTERS: Final = {
    reason: counter(
        f"rabbitmq_global_messages_dead_lettered_{reason}_total", help, "queue_type", "dead_letter_strategy"
    )
    for reason, help in _REASONS.items()
}
_STRATEGIES: Final = {
    "classic": ("disabled", "at_most_once"),
    "quorum": ("disabled", "at_most_once", "at_least_once"),
}

FAMILIES: Final[tuple[Family, ...]] = (
    *(reading.family for reading in PUBLISHES),
    *(reading.family for reading in DELIVERIES),
    *(PUBLISHERS, CONSUMERS, SIZES),
    *DEAD_LETTERS.values(),
)


def publishes(broker: Broker) -> Iterator[Metric]:
    """Yield the publishes by protocol, and the sizes of their bodies."""
    by_protocol = publishes_by_protocol(broker)
    for reading in PUBLISHES:
        yield reading.family.metric([((name,), reading.read(traffic)) for name, traffic in by_protocol.items()])
    sizes = SIZES.empty()
    for name, traffic in by_protocol.items():
        add_buckets(sizes, SIZES, (name,), SIZE_BOUNDS, traffic.sizes, traffic.bytes)
    yield sizes


def deliveries(broker: Broker) -> Iterator[Metric]:
    """Yield the deliveries by protocol and queue type."""
    counts = deliveries_by_protocol(broker)
    rows = {
        (protocol, queue_type_label(kind)): each for (protocol, kind), each in counts.items() if _has(protocol, kind)
    }
    for reading in DELIVERIES:
        yield reading.family.metric([(labels, reading.read(counters)) for labels, counters in rows.items()])


def _has(protocol: str, queue_type: str) -> bool:
    """Return whether a protocol has deliveries from this queue type: those with QoS 0 are MQTT's."""
    return queue_type != QOS0_QUEUE or protocol.startswith("mqtt")


def clients(totals: Totals) -> Iterator[Metric]:
    """Yield the publishers and consumers by protocol."""
    names = PROTOCOLS.values()
    yield PUBLISHERS.metric([((name,), totals.publishers[name]) for name in names])
    yield CONSUMERS.metric([((name,), totals.consumers[name]) for name in names])


def dead_letters(broker: Broker, totals: Totals) -> Iterator[Metric]:
    """Yield the dead letters by reason; the strategy ``disabled`` is that of messages dropped without one."""
    drops = _drops_by_type(broker, totals)
    lettered = _dead_letters(broker)
    for reason, family in DEAD_LETTERS.items():
        rows = []
        for queue_type, strategies in _STRATEGIES.items():
            for strategy in strategies:
                count = lettered.get((queue_type, strategy, reason), 0)
                if strategy == "disabled":
                    others = (lettered.get((queue_type, other, reason), 0) for other in strategies)
                    count = max(0, drops[queue_type].get(reason, 0) - sum(others))
                rows.append(((queue_type_label(queue_type), strategy), float(count)))
        yield family.metric(rows)


def _drops_by_type(broker: Broker, totals: Totals) -> dict[str, dict[str, int]]:
    sums = {queue_type: Counters() for queue_type in _STRATEGIES}
    for queue_type, counters in broker.departed_traffic.departed.items():
        if queue_type in sums:
            sums[queue_type].add(counters)
    for (_, queue_type), counters in totals.counted.items():
        if queue_type in sums:
            sums[queue_type].add(counters)
    return {queue_type: counters.drops() for queue_type, counters in sums.items()}


def _dead_letters(broker: Broker) -> dict[tuple[str, str, str], int]:
    sums: dict[tuple[str, str, str], int] = {}
    traffics: list[VhostTraffic] = [vhost.traffic for vhost in broker.vhost_by_name.values()]
    for traffic in (broker.departed_traffic, *traffics):
        for cause, count in traffic.dead_letters.items():
            sums[cause] = sums.get(cause, 0) + count
    return sums
