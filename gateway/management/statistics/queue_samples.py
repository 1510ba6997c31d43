"""The counts of the queues and exchanges of virtual hosts: those that have not changed are not read."""

from collections.abc import Iterator
from typing import Final

from gateway.kernel.queueing.queue_like import QueueLike, queues_with_news
from gateway.kernel.routing.exchange import Exchange
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.management.depths.depth_record import DepthRecord
from gateway.management.statistics.counts import (
    add,
    add_increase,
    counts_by_name,
    disk_counts,
    exchange_counts,
    message_counts,
    queue_counts,
    traffic_counts,
)
from gateway.management.statistics.histories import Histories
from gateway.management.statistics.history import Counts
from gateway.management.statistics.subjects import Key, key_of, route_key

#: Weight of a sample in a queue's consumer capacity, a moving average, and the difference at which it has arrived.
_CAPACITY_WEIGHT: Final = 0.2
_ARRIVED: Final = 0.001

#: Queues and exchanges that are compared in one step.
_STEP: Final = 256

#: Queues that are read in one step: a queue takes 20 to 40 µs as source.
_READ_STEP: Final = 64


class QueueSamples:
    """Samples queues and exchanges. Owns their sums by virtual host, which follow those that changed.

    ``disk`` sums up what queues read from and wrote to the store. ``depths`` gets each queue that is read.
    """

    def __init__(self, histories: Histories, depths: DepthRecord | None = None) -> None:
        self._depths = depths
        self._histories = histories
        self.disk: Counts = {"disk_reads": 0, "disk_writes": 0}
        self._sums: dict[str, Counts] = {}
        #: The queues in the sums, by virtual host.
        self._summed: dict[str, set[str]] = {}
        #: The averages of queues with consumers, and the queues whose averages have not arrived at what they are now.
        self._capacities: dict[Key, float] = {}
        self._moving: dict[Key, QueueLike] = {}
        #: The keys of the routes of each exchange that have histories.
        self._routes: dict[Key, set[Key]] = {}

    def clear(self) -> None:
        """Read everything anew with the next sample."""
        self._sums, self._summed, self._capacities, self._moving, self._routes = {}, {}, {}, {}, {}

    def deleted(self, vhost: str, queue: str) -> None:
        """Take a deleted queue out of the sums: its counts are in those of the virtual host's former queues now."""
        summed = self._summed.get(vhost)
        if summed is None or queue not in summed:
            return
        summed.discard(queue)
        key: Key = ("queue", vhost, queue)
        sums = self._sums[vhost]
        for name, number in self._histories.latest(key).items():
            if name in sums:
                sums[name] -= number
        self._histories.forget(key)
        self._capacities.pop(key, None)
        self._moving.pop(key, None)
        for (_, of_vhost, exchange), routes in self._routes.items():
            route: Key = ("route", vhost, exchange, queue)
            if of_vhost == vhost and route in routes:
                routes.discard(route)
                self._histories.forget(route)

    def exchange_deleted(self, vhost: str, exchange: str) -> None:
        """Forget an exchange and its routes."""
        key: Key = ("exchange", vhost, exchange)
        for gone in (key, *self._routes.pop(key, ())):
            self._histories.forget(gone)

    def keep_only(self, vhosts: set[str]) -> None:
        """Forget the virtual hosts that do not exist any more."""
        for name in self._sums.keys() - vhosts:
            del self._sums[name], self._summed[name]

    def sums_of(self, vhost: VirtualHost) -> Counts:
        """Return the sums over all queues that a virtual host has had, as of their last samples."""
        sums = counts_by_name(vhost.traffic.departed_total()) | message_counts(0, 0)
        add(sums, self._sums.get(vhost.name, {}))
        return sums | traffic_counts(vhost.traffic)

    def sampling(self, vhost: VirtualHost) -> Iterator[None]:
        """Sample the queues and exchanges of a virtual host, in steps."""
        queues = list(vhost.queue_by_name.values())
        is_new = vhost.name not in self._summed
        summed = self._summed.setdefault(vhost.name, set())
        self._sums.setdefault(vhost.name, {})
        for first in range(0, len(queues), _STEP):
            some = queues[first : first + _STEP]
            news = queues_with_news(some)
            for number, queue in enumerate(some if is_new else news, 1):
                if not queue.is_deleted:
                    self._sample_queue(queue, summed)
                if number % _READ_STEP == 0:
                    yield
            yield
        yield from self._sampling_exchanges(vhost)

    def _sample_queue(self, queue: QueueLike, summed: set[str]) -> None:
        key = key_of(queue)
        before = self._histories.latest(key)
        counts = queue_counts(queue)
        sums = self._sums[queue.vhost_name]
        counted = before if queue.name in summed else {}
        for name, number in counts.items():
            sums[name] = sums.get(name, 0) + number - counted.get(name, 0)
        summed.add(queue.name)
        counts |= disk_counts(queue)
        add_increase(self.disk, before, counts)
        self._histories.record(key, counts)
        self._moving[key] = queue
        if self._depths is not None:
            self._depths.saw(queue)

    def _sampling_exchanges(self, vhost: VirtualHost) -> Iterator[None]:
        for number, exchange in enumerate(list(vhost.exchange_by_name.values()), 1):
            key, counts = key_of(exchange), exchange_counts(exchange)
            history = self._histories.by_key.get(key)
            if history is None or history.is_moving or history.latest() != counts:
                self._histories.record(key, counts)
                yield from self._sampling_routes(exchange)
            if number % _STEP == 0:
                yield

    def _sampling_routes(self, exchange: Exchange) -> Iterator[None]:
        found: set[Key] = set()
        for each in exchange.passed_on():
            if each is not None:
                route = route_key(exchange, each[0])
                found.add(route)
                self._histories.record(route, {"publish": each[1]})
            yield
        key = key_of(exchange)
        for gone in self._routes.pop(key, set()) - found:
            self._histories.forget(gone)
        if found:
            self._routes[key] = found

    # Capacity

    def capacity(self, queue: QueueLike) -> float:
        """Return the consumer capacity of a queue: the share of samples at which its consumers could take more."""
        if not len(queue.consumers):
            return 0.0
        return self._capacities.get(key_of(queue), _capacity_now(queue))

    def updating_capacities(self) -> Iterator[None]:
        """Update the averages that have not arrived at what their queues are like now, in steps."""
        for number, (key, queue) in enumerate(list(self._moving.items()), 1):
            if number % _STEP == 0:
                yield
            if queue.is_deleted or not len(queue.consumers):
                self._capacities.pop(key, None)
                self._moving.pop(key, None)
                continue
            now = _capacity_now(queue)
            before = self._capacities.get(key, now)
            self._capacities[key] = before + (now - before) * _CAPACITY_WEIGHT
            if abs(now - before) < _ARRIVED:
                self._moving.pop(key, None)


def _capacity_now(queue: QueueLike) -> float:
    return 0.0 if queue.lacks_capacity else 1.0
