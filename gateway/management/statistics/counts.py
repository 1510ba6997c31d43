"""The kernel's counters by RabbitMQ's names, and their sums."""

from collections.abc import Mapping

from gateway.kernel.broker.connections import ChannelInfo, Peer
from gateway.kernel.counters import COUNTED, Counters
from gateway.kernel.queueing.channel_counters import PublishCounters
from gateway.kernel.queueing.queue_like import QueueLike
from gateway.kernel.routing.exchange import Exchange
from gateway.kernel.traffic import VhostTraffic
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.management.statistics.history import Counts


def counts_by_name(counters: Counters) -> Counts:
    """Return counters by name; ``deliver_get`` is the sum of the four kinds of deliveries."""
    counts = {name: getattr(counters, name) for name in COUNTED}
    counts["deliver_get"] = sum(counts[way] for way in ("deliver", "deliver_no_ack", "get", "get_no_ack"))
    return counts


def queue_counts(queue: QueueLike) -> Counts:
    """Return the counters and message counts of a queue."""
    return counts_by_name(queue.counters) | message_counts(len(queue), queue.unsettled)


def message_counts(ready: int, unacknowledged: int) -> Counts:
    """Return message counts."""
    return {
        "messages": ready + unacknowledged,
        "messages_ready": ready,
        "messages_unacknowledged": unacknowledged,
    }


def disk_counts(queue: QueueLike) -> Counts:
    """Return the number of a queue's messages read from and written to the store."""
    return {"disk_reads": queue.disk_reads, "disk_writes": queue.disk_writes}


def exchange_counts(exchange: Exchange) -> Counts:
    """Return the number of messages published to an exchange, and of those routed to queues."""
    return {"publish_in": exchange.published_in, "publish_out": exchange.published_out}


def octets(peer: Peer) -> Counts:
    """Return the bytes received and sent by a connection."""
    received, sent = peer.octets
    return {"recv_oct": received, "send_oct": sent}


def channel_counts(channel: ChannelInfo) -> Counts:
    """Return the counters of a channel."""
    return counts_by_name(channel.counters) | {
        "confirm": channel.confirmed,
        "return_unroutable": channel.returned,
        "drop_unroutable": channel.unroutable,
    }


def publish_counts(channel: ChannelInfo, tally: PublishCounters) -> Counts:
    """Return the counters of a channel's publishes to one exchange.

    Confirms are not counted by exchange, so they are included only if the channel publishes to a single exchange.
    """
    counts = {
        "drop_unroutable": tally.drop_unroutable,
        "publish": tally.publish,
        "return_unroutable": tally.return_unroutable,
    }
    return counts | {"confirm": channel.confirmed} if len(channel.publishes) == 1 else counts


def traffic_counts(traffic: VhostTraffic) -> Counts:
    """Return the counters of publishes, each message once."""
    return {
        "publish": traffic.published,
        "confirm": traffic.confirmed,
        "return_unroutable": traffic.returned,
        "drop_unroutable": traffic.unroutable - traffic.returned,
    }


def vhost_counts(vhost: VirtualHost) -> Counts:
    """Return the sums of a virtual host."""
    sums = counts_by_name(vhost.traffic.departed_total()) | message_counts(0, 0)
    for queue in vhost.queue_by_name.values():
        add(sums, queue_counts(queue))
    return sums | traffic_counts(vhost.traffic)


def add(sums: Counts, others: Mapping[str, int]) -> None:
    """Add counts to sums by name."""
    for name, number in others.items():
        sums[name] = sums.get(name, 0) + number


def add_increase(sums: Counts, before: Mapping[str, int], now: Mapping[str, int]) -> None:
    """Add what the counts of a subject have grown by; if one has decreased, a new subject has the same name."""
    for name in sums:
        increase = now[name] - before.get(name, 0)
        sums[name] += increase if increase >= 0 else now[name]
