"""Rates and samples from the kernel's counters, which are read every few seconds.

The kernel keeps no history. This module keeps samples of the last ten minutes for each subject, and of the last day for
the whole broker. Subjects are identified by name: a reference would keep deleted queues in memory. A subject that has
not changed is not read: most of many queues and connections are idle.
"""

import gc
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from gateway.kernel.broker.broker import Broker
from gateway.kernel.events import Event
from gateway.kernel.queueing.queue_like import QueueLike
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.management.depths.depth_record import DepthRecord
from gateway.management.statistics.counts import add, counts_by_name, message_counts, traffic_counts, vhost_counts
from gateway.management.statistics.histories import Histories
from gateway.management.statistics.history import Counts, History, Span, Trend
from gateway.management.statistics.peer_samples import PeerSamples
from gateway.management.statistics.queue_samples import QueueSamples
from gateway.management.statistics.subjects import BROKER, NODE, Key, key_of
from gateway.management.statistics.usage import usage

#: Interval between samples in seconds; RabbitMQ's collect_statistics_interval.
INTERVAL_S: Final = 5.0

#: Time for which one sample a minute of the broker is kept, in seconds, and their number.
LONG_RETENTION_S: Final = 86_400
_MINUTE_S: Final = 60.0
_MAX_LONG_SAMPLES: Final = 1442

#: Above this number of queues, requests get the sums of the last sample.
_MAX_SUMMED_QUEUES: Final = 2_000


class Statistics:
    """Samples the counters and computes rates. ``now_s`` is monotonic.

    ``data`` is the directory whose free disk space is sampled. ``collections`` is the number of collections of the
    youngest generation at the last sample, ``queues_created`` and ``queues_deleted`` count queues since the start.
    ``depths`` records the depths of the queues that are read.
    """

    def __init__(
        self, broker: Broker, now_s: Callable[[], float], data: Path = Path(), depths: DepthRecord | None = None
    ) -> None:
        self._broker = broker
        self._now_s = now_s
        self._data = data
        self._histories = Histories()
        self._depths = depths
        self._queues = QueueSamples(self._histories, depths)
        self._peers = PeerSamples(self._histories)
        self._long = History()
        self._cleared_at_s = now_s()
        self._sampled_at_s = 0.0  # the time of the last sample that was not ended by a reset
        self._resets = 0
        self.collections = 0
        self.queues_created = 0
        self.queues_deleted = 0
        broker.events.subscribe(self._count_event, "queue", "exchange")

    # Sampling

    def sample(self) -> Iterator[None]:
        """Take one sample of every subject that has changed, in small steps; a reset meanwhile ends it."""
        resets = self._resets
        for _ in self._sampling():
            yield
            if self._resets != resets:
                return

    def _sampling(self) -> Iterator[None]:
        now_s = self._now_s()
        histories = self._histories
        histories.begin(now_s)
        vhosts = list(self._broker.vhost_by_name.values())
        if self._depths is not None:
            self._depths.begin()
        for vhost in vhosts:
            yield from self._queues.sampling(vhost)
        if self._depths is not None:
            self._depths.end()
        yield from self._queues.updating_capacities()
        yield from self._peers.sampling(self._broker.connections)
        broker = self._departed_counts()
        for vhost in vhosts:
            sums = self._queues.sums_of(vhost)
            add(broker, sums)
            histories.record(key_of(vhost), sums | self.octets_of(vhost))
            yield
        counts = broker | self.churn() | self._queues.disk
        histories.record(BROKER, counts)
        histories.record(NODE, self.node_counts())
        if not len(self._long) or now_s - self._long.sampled_at_s >= _MINUTE_S:
            self._long.record(now_s, counts, _MAX_LONG_SAMPLES, LONG_RETENTION_S)
        self._sampled_at_s = now_s
        self.collections = gc.get_stats()[0]["collections"]
        names = set(self._broker.vhost_by_name)
        self._queues.keep_only(names)
        self._peers.keep_only(names)
        if now_s - self._cleared_at_s >= _MINUTE_S:
            self._cleared_at_s = now_s
            yield from histories.clearing(self._exists)
            yield from self._peers.resting()

    def _exists(self, key: Key) -> bool:
        """Whether a subject exists; connections and channels are forgotten when they are closed."""
        kind = key[0]
        if kind not in ("queue", "exchange", "route", "vhost"):
            return True
        vhost = self._broker.vhost_by_name.get(str(key[1]))
        if vhost is None or kind == "vhost":
            return vhost is not None
        if kind == "queue":
            return key[2] in vhost.queue_by_name
        return key[2] in vhost.exchange_by_name and (kind == "exchange" or key[3] in vhost.queue_by_name)

    # Queries

    def trend(self, key: Key, spans: Mapping[str, Span]) -> Trend:
        """Return the rates and samples of a subject; all zero before two samples."""
        long = self._long if key == BROKER else None
        wall_s = self._broker.clock.wall_ms() / 1000
        history = self._histories.by_key.get(key) or self._peers.history_of(key)
        return Trend(history, spans, self._now_s(), wall_s, long)

    def sampled(self, key: Key) -> Counts:
        """Return the counts of the last sample; empty before the first."""
        return self._histories.latest(key)

    def idle_since_ms(self, key: Key) -> int | None:
        """Return the wall time of the last change; ``None`` if a count changed recently or without samples."""
        history = self._histories.by_key.get(key)
        if history is None or history.changed_at_s >= self._sampled_at_s:
            return None
        return round(self._broker.clock.wall_ms() - (self._now_s() - history.changed_at_s) * 1000)

    def capacity(self, queue: QueueLike) -> float:
        """Return the consumer capacity of a queue: the share of samples at which its consumers could take more."""
        return self._queues.capacity(queue)

    def forget(self) -> None:
        """Delete all rates and samples."""
        self._resets += 1
        self._histories.clear()
        self._queues.clear()
        self._peers.clear()
        self._long = History()

    def octets_of(self, vhost: VirtualHost) -> Counts:
        """Return the bytes received and sent by connections of a virtual host at the last sample."""
        return self._peers.octets_of(vhost)

    def counts_of(self, vhost: VirtualHost) -> Counts:
        """Return the sums of a virtual host."""
        latest = self._histories.latest(key_of(vhost))
        if len(vhost.queue_by_name) > _MAX_SUMMED_QUEUES and latest:
            return latest
        return vhost_counts(vhost) | self.octets_of(vhost)

    def counts(self) -> Counts:
        """Return the sums of the broker."""
        sums = self._departed_counts()
        for vhost in self._broker.vhost_by_name.values():
            add(sums, self.counts_of(vhost))
        return sums | self._queues.disk

    def disk_counts(self) -> Counts:
        """Return the messages that queues read from and wrote to the store, up to the last sample."""
        return dict(self._queues.disk)

    def churn(self) -> Counts:
        """Return the numbers of connections, channels and queues opened and closed."""
        connections = self._broker.connections
        return {
            "channel_closed": connections.channels_closed,
            "channel_created": connections.channels_opened,
            "connection_closed": connections.opened - len(connections),
            "connection_created": connections.opened,
            "queue_created": self.queues_created,
            "queue_declared": self.queues_created,
            "queue_deleted": self.queues_deleted,
        }

    def node_counts(self) -> Counts:
        """Return the resource usage and counts of the node, measured now."""
        disk = self._queues.disk
        stored = {"msg_store_read_count": disk["disk_reads"], "msg_store_write_count": disk["disk_writes"]}
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
            self._queues.deleted(event.vhost, event.subject)
        elif event.name == "exchange.deleted":
            self._queues.exchange_deleted(event.vhost, event.subject)
