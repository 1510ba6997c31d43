"""Rates and samples from the kernel's counters, which are read every few seconds.

The kernel keeps no history. This module keeps samples of the last ten minutes for each subject, and of the last day for
the whole broker. Subjects are identified by name: a reference would keep deleted queues in memory.
"""

import gc
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from gateway.kernel.broker.broker import Broker
from gateway.kernel.broker.connections import Peer
from gateway.kernel.events import Event
from gateway.kernel.queueing.queue_like import QueueLike
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.management.statistics.counts import (
    add,
    channel_counts,
    counts_by_name,
    disk_counts,
    exchange_counts,
    message_counts,
    octets,
    publish_counts,
    queue_counts,
    traffic_counts,
    vhost_counts,
)
from gateway.management.statistics.history import RETENTION_S, Counts, History, Span, Trend
from gateway.management.statistics.subjects import (
    BROKER,
    BROKER_LONG,
    NODE,
    Key,
    channel_key,
    deliveries_key,
    key_of,
    publishes_key,
    route_key,
)
from gateway.management.statistics.usage import usage

#: Interval between samples in seconds; RabbitMQ's collect_statistics_interval.
INTERVAL_S: Final = 5.0

#: Time for which one sample a minute of the broker is kept, in seconds.
LONG_RETENTION_S: Final = 86_400
_MINUTE_S: Final = 60.0

#: Maximum and minimum number of samples of one subject, and of all together that change: with many of them each has
#: fewer. A subject that does not change has one. The broker and the node always have the maximum.
_MAX_SAMPLES: Final = 122
_MAX_LONG_SAMPLES: Final = 1442
_MIN_SAMPLES: Final = 3
_SAMPLE_BUDGET: Final = 100_000

#: Weight of a sample in a queue's consumer capacity, a moving average.
_CAPACITY_WEIGHT: Final = 0.2

#: Above this number of queues, requests get the sums of the last sample.
_MAX_SUMMED_QUEUES: Final = 2_000


class Statistics:
    """Samples the counters and computes rates. ``now_s`` is monotonic.

    ``data`` is the directory whose free disk space is sampled. ``collections`` is the number of collections of the
    youngest generation at the last sample, ``queues_created`` and ``queues_deleted`` count queues since the start.
    """

    def __init__(self, broker: Broker, now_s: Callable[[], float], data: Path = Path()) -> None:
        self._broker = broker
        self._now_s = now_s
        self._data = data
        self._histories: dict[Key, History] = {}
        self._changing = 0  # subjects with more than one sample
        self._capacities: dict[Key, float] = {}
        self._octets_by_vhost: dict[str, Counts] = {}
        self._disk: Counts = {"disk_reads": 0, "disk_writes": 0}
        self.collections = 0
        self.queues_created = 0
        self.queues_deleted = 0
        broker.events.subscribe(self._count_event)

    # Sampling

    def sample(self) -> Iterator[None]:
        """Take one sample of every subject, in small steps."""
        now_s = self._now_s()
        keep = max(_MIN_SAMPLES, min(_MAX_SAMPLES, _SAMPLE_BUDGET // (self._changing + 1)))
        seen: dict[Key, History] = {}
        changing = 0
        for sampled in self._all_counts():
            if sampled is None:
                yield
                continue
            key, counts = sampled
            history = seen[key] = self._histories.get(key) or History()
            history.record(now_s, counts, _MAX_SAMPLES if key in (BROKER, NODE) else keep, RETENTION_S)
            changing += len(history) > 1
            yield
        self._sample_long(now_s, seen)
        self.collections = gc.get_stats()[0]["collections"]
        self._histories, self._changing = seen, changing
        self._capacities = {key: share for key, share in self._capacities.items() if key in seen}
        self._octets_by_vhost = {
            name: octets for name, octets in self._octets_by_vhost.items() if ("vhost", name) in seen
        }

    def _sample_long(self, now_s: float, seen: dict[Key, History]) -> None:
        """Take one sample a minute of the broker, kept for a day."""
        history = seen[BROKER_LONG] = self._histories.get(BROKER_LONG) or History()
        if not len(history) or now_s - history.sampled_at_s >= _MINUTE_S:
            history.record(now_s, seen[BROKER].latest(), _MAX_LONG_SAMPLES, LONG_RETENTION_S)

    def _all_counts(self) -> Iterator[tuple[Key, Counts] | None]:
        """Yield the counts of every subject; ``None`` after a step of work without one."""
        sums_by_vhost: dict[VirtualHost, Counts] = {}
        for vhost in list(self._broker.vhost_by_name.values()):
            sums = sums_by_vhost[vhost] = counts_by_name(vhost.traffic.departed_total()) | message_counts(0, 0)
            yield from self._vhost_samples(vhost, sums)
        for peer in self._broker.connections:
            yield from self._peer_samples(peer)
        broker = self._departed_counts()
        for vhost, sums in sums_by_vhost.items():
            sums |= traffic_counts(vhost.traffic)
            add(broker, sums)
            yield key_of(vhost), sums | self.octets_of(vhost)
        yield BROKER, broker | self.churn() | self._disk
        yield NODE, self.node_counts()

    def _vhost_samples(self, vhost: VirtualHost, sums: Counts) -> Iterator[tuple[Key, Counts] | None]:
        for name in list(vhost.queue_by_name):
            queue = vhost.queue_by_name.get(name)
            if queue is not None:
                counts = queue_counts(queue) | disk_counts(queue)
                self._update_capacity(queue)
                self._add_increase(self._disk, key_of(queue), counts)
                add(sums, queue_counts(queue))
                yield key_of(queue), counts
        for exchange in list(vhost.exchange_by_name.values()):
            yield key_of(exchange), exchange_counts(exchange)
            for each in exchange.passed_on():
                yield None if each is None else (route_key(exchange, each[0]), {"publish": each[1]})

    def _peer_samples(self, peer: Peer) -> Iterator[tuple[Key, Counts]]:
        counts = octets(peer)
        sums = self._octets_by_vhost.setdefault(peer.vhost_name, {"recv_oct": 0, "send_oct": 0})
        self._add_increase(sums, key_of(peer), counts)
        yield key_of(peer), counts
        for channel in peer.channels():
            yield channel_key(peer, channel.number), channel_counts(channel)
            for exchange, tally in list(channel.publishes.items()):
                yield publishes_key(peer, channel.number, exchange), publish_counts(channel, tally)
            for queue, counters in list(channel.deliveries.items()):
                yield deliveries_key(peer, channel.number, queue), counts_by_name(counters)

    def _add_increase(self, sums: Counts, key: Key, counts: Counts) -> None:
        """Add the increase since the last sample, so that sums do not decrease when a subject is deleted."""
        history = self._histories.get(key)
        before = history.latest() if history is not None else {}
        for name in sums:
            increase = counts[name] - before.get(name, 0)
            sums[name] += increase if increase >= 0 else counts[name]

    def _update_capacity(self, queue: QueueLike) -> None:
        """Update the average of whether the consumers of a queue could take more messages."""
        key, now = key_of(queue), _capacity_now(queue)
        before = self._capacities.get(key)
        if not len(queue.consumers):
            self._capacities.pop(key, None)
        else:
            self._capacities[key] = now if before is None else before + (now - before) * _CAPACITY_WEIGHT

    # Queries

    def trend(self, key: Key, spans: Mapping[str, Span]) -> Trend:
        """Return the rates and samples of a subject; all zero before two samples."""
        long = self._histories.get(BROKER_LONG) if key == BROKER else None
        wall_s = self._broker.clock.wall_ms() / 1000
        return Trend(self._histories.get(key), spans, self._now_s(), wall_s, long)

    def sampled(self, key: Key) -> Counts:
        """Return the counts of the last sample; empty before the first."""
        history = self._histories.get(key)
        return {} if history is None else history.latest()

    def idle_since_ms(self, key: Key) -> int | None:
        """Return the wall time of the last change; ``None`` if a count changed recently or without samples."""
        history = self._histories.get(key)
        if history is None or history.changed_at_s >= history.sampled_at_s:
            return None
        return round(self._broker.clock.wall_ms() - (self._now_s() - history.changed_at_s) * 1000)

    def capacity(self, queue: QueueLike) -> float:
        """Return the consumer capacity of a queue: the share of samples at which its consumers could take more."""
        if not len(queue.consumers):
            return 0.0
        return self._capacities.get(key_of(queue), _capacity_now(queue))

    def forget(self) -> None:
        """Delete all rates and samples."""
        self._histories = {}
        self._capacities = {}

    def octets_of(self, vhost: VirtualHost) -> Counts:
        """Return the bytes received and sent by connections of a virtual host at the last sample."""
        return dict(self._octets_by_vhost.get(vhost.name) or {"recv_oct": 0, "send_oct": 0})

    def counts_of(self, vhost: VirtualHost) -> Counts:
        """Return the sums of a virtual host."""
        history = self._histories.get(key_of(vhost))
        if len(vhost.queue_by_name) > _MAX_SUMMED_QUEUES and history is not None:
            return history.latest()
        return vhost_counts(vhost) | self.octets_of(vhost)

    def counts(self) -> Counts:
        """Return the sums of the broker."""
        sums = self._departed_counts()
        for vhost in self._broker.vhost_by_name.values():
            add(sums, self.counts_of(vhost))
        return sums | self._disk

    def disk_counts(self) -> Counts:
        """Return the messages that queues read from and wrote to the store, up to the last sample."""
        return dict(self._disk)

    def churn(self) -> Counts:
        """Return the numbers of connections, channels and queues opened and closed."""
        connections = self._broker.connections
        channels = sum(peer.channel_count for peer in connections)
        return {
            "channel_closed": connections.channels_opened - channels,
            "channel_created": connections.channels_opened,
            "connection_closed": connections.opened - len(connections),
            "connection_created": connections.opened,
            "queue_created": self.queues_created,
            "queue_declared": self.queues_created,
            "queue_deleted": self.queues_deleted,
        }

    def node_counts(self) -> Counts:
        """Return the resource usage and counts of the node, measured now."""
        stored = {"msg_store_read_count": self._disk["disk_reads"], "msg_store_write_count": self._disk["disk_writes"]}
        return self.churn() | usage(self._broker, self._data) | stored

    def _departed_counts(self) -> Counts:
        """Return the counts of deleted virtual hosts."""
        departed = self._broker.departed_traffic
        return counts_by_name(departed.departed_total()) | message_counts(0, 0) | traffic_counts(departed)

    def _count_event(self, event: Event) -> None:
        if event.name == "queue.created":
            self.queues_created += 1
        elif event.name == "queue.deleted":
            self.queues_deleted += 1


def _capacity_now(queue: QueueLike) -> float:
    return 0.0 if queue.lacks_capacity else 1.0
