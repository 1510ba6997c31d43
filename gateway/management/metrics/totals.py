"""The sums over all queues and connections, added up in steps: one pass for each scrape."""

from collections import defaultdict
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Final

from gateway.kernel.broker.broker import Broker
from gateway.kernel.broker.connections import Peer
from gateway.kernel.counters import Counters
from gateway.kernel.queueing.queue import Queue
from gateway.kernel.queueing.queue_like import QueueLike
from gateway.kernel.traffic import QOS0_QUEUE, Traffic
from gateway.kernel.vhosts.virtual_host import VirtualHost

#: RabbitMQ's names of the protocols, by the names in origins.
PROTOCOLS: Final = {
    "amqp091": "amqp091",
    "MQTT 3-1": "mqtt310",
    "MQTT 3-1-1": "mqtt311",
    "MQTT 5-0": "mqtt50",
    "STOMP 1.0": "STOMP 1.0",
    "STOMP 1.1": "STOMP 1.1",
    "STOMP 1.2": "STOMP 1.2",
    "HTTP": "http",
}

QUEUE_TYPES: Final = ("classic", "quorum", "stream", QOS0_QUEUE)

#: Queues, and connections, between two steps.
_STEP: Final = 32


@dataclass(slots=True)
class QueueSums:
    """The sums of the queues of one virtual host and type, or of several."""

    queues: int = 0
    ready: int = 0
    unacked: int = 0
    ready_bytes: int = 0
    unacked_bytes: int = 0
    consumers: int = 0
    delayed: int = 0
    pending_dead_letters: int = 0
    disk_reads: int = 0
    disk_writes: int = 0

    def add(self, queue: QueueLike) -> None:
        """Add a queue."""
        self.queues += 1
        self.ready += len(queue)
        self.unacked += queue.unsettled
        self.consumers += len(queue.consumers)
        self.delayed += queue.delayed_count
        self.pending_dead_letters += queue.pending_dead_letter_count
        self.disk_reads += queue.disk_reads
        self.disk_writes += queue.disk_writes
        if isinstance(queue, Queue):
            self.ready_bytes += queue.ready.bytes
            self.unacked_bytes += queue.held.all.bytes


@dataclass(slots=True)
class ChannelSums:
    """The sums of all channels."""

    channels: int = 0
    consumers: int = 0
    unacked: int = 0
    unconfirmed: int = 0
    uncommitted: int = 0
    acks_uncommitted: int = 0
    prefetch: int = 0
    shared_prefetch: int = 0
    pending_bytes: int = 0


@dataclass(slots=True)
class Totals:
    """The sums of a node.

    ``by_vhost`` has the sums of queues by virtual host and queue type, ``counted`` the counters of queues by the same,
    deleted ones included. ``publishers`` and ``consumers`` are numbers by protocol, as are ``connections``.
    """

    by_vhost: defaultdict[tuple[str, str], QueueSums] = field(default_factory=lambda: defaultdict(QueueSums))
    counted: defaultdict[tuple[str, str], Counters] = field(default_factory=lambda: defaultdict(Counters))
    exchanges: int = 0
    channels: ChannelSums = field(default_factory=ChannelSums)
    publishers: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    consumers: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    connections: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))

    @property
    def queues(self) -> QueueSums:
        """The sums of all queues."""
        total = QueueSums()
        for sums in self.by_vhost.values():
            for name in QueueSums.__dataclass_fields__:
                setattr(total, name, getattr(total, name) + getattr(sums, name))
        return total


def adding_up(broker: Broker) -> Generator[None, None, Totals]:
    """Return the steps that add up all queues and connections."""
    totals = Totals()
    for vhost in list(broker.vhost_by_name.values()):
        yield from _add_queues(totals, vhost)
        totals.exchanges += len(vhost.exchange_by_name)
    for number, peer in enumerate(broker.connections):
        _add_peer(totals, peer)
        if number % _STEP == 0:
            yield
    return totals


def _add_queues(totals: Totals, vhost: VirtualHost) -> Generator[None, None, None]:
    for queue_type, counters in vhost.traffic.departed.items():
        totals.counted[vhost.name, queue_type].add(counters)
    for number, queue in enumerate(list(vhost.queue_by_name.values())):
        key = vhost.name, queue.type_name
        totals.counted[key].add(queue.counters)  # of a queue that was deleted since the first step, too
        if not queue.is_deleted:
            totals.by_vhost[key].add(queue)
        if number % _STEP == 0:
            yield


def _add_peer(totals: Totals, peer: Peer) -> None:
    load, sums = peer.load(), totals.channels
    if load is not None:
        protocol = PROTOCOLS.get(load.protocol, load.protocol)
        totals.publishers[protocol] += load.publishers
        totals.consumers[protocol] += load.consumers
        totals.connections[protocol] += 1
    sums.channels += peer.channel_count
    for channel in peer.channels():
        sums.consumers += len(channel.consumers)
        sums.unacked += channel.unacknowledged
        sums.unconfirmed += channel.unconfirmed
        sums.uncommitted += channel.uncommitted
        sums.acks_uncommitted += channel.acks_uncommitted
        sums.prefetch += channel.prefetch
        sums.shared_prefetch += channel.shared_prefetch


def publishes_by_protocol(broker: Broker) -> dict[str, Traffic]:
    """Return the publishes of clients by RabbitMQ's name of the protocol, in all virtual hosts, deleted ones too."""
    sums = {name: Traffic() for name in PROTOCOLS.values()}
    for traffic in (broker.departed_traffic, *(vhost.traffic for vhost in broker.vhost_by_name.values())):
        for protocol, counts in traffic.by_protocol.items():
            if protocol in PROTOCOLS:
                sums[PROTOCOLS[protocol]].add(counts)
    return sums


def deliveries_by_protocol(broker: Broker) -> dict[tuple[str, str], Counters]:
    """Return the deliveries by protocol and queue type, in all virtual hosts, deleted ones too."""
    sums = {(name, queue_type): Counters() for name in PROTOCOLS.values() for queue_type in QUEUE_TYPES}
    for traffic in (broker.departed_traffic, *(vhost.traffic for vhost in broker.vhost_by_name.values())):
        for (protocol, queue_type), counters in traffic.delivered.items():
            if (key := (PROTOCOLS.get(protocol, ""), queue_type)) in sums:
                sums[key].add(counters)
    return sums


def queue_type_label(queue_type: str) -> str:
    """Return RabbitMQ's name of a queue type in labels."""
    return f"rabbit_{queue_type}_queue"
