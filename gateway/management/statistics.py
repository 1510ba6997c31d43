"""Rates, from looking at the kernel's counters every few seconds.

The kernel counts and remembers nothing. Here the last look at each queue, exchange and connection is kept for its
rates, and the last ten minutes of looks at the whole broker and each virtual host. What is looked at is known by its
``id`` alone: a reference would keep deleted queues in memory until the next look.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

from gateway.kernel.broker import Broker
from gateway.kernel.counters import COUNTED, Counters
from gateway.kernel.events import Event
from gateway.kernel.vhost import VirtualHost

#: How often to look, in seconds; RabbitMQ's collect_statistics_interval.
INTERVAL_S: Final = 5.0

#: How many looks at the broker and at each virtual host are remembered.
RING: Final = 120

#: More queues than this are not summed up for every reader; the sums of the last look are given out.
_SUMMED_AT_ONCE: Final = 10_000

Counts: TypeAlias = dict[str, int]
Rates: TypeAlias = dict[str, float]


class Statistics:
    """Looks at the counters and works out rates. ``now_s`` never runs backwards.

    ``history`` holds the looks at each virtual host as (when, counts), oldest first, and under ``""`` those at the
    broker.
    """

    def __init__(self, broker: Broker, now_s: Callable[[], float]) -> None:
        self._broker = broker
        self._now_s = now_s
        self._looked_at: dict[int, Counts] = {}
        self._rates: dict[int, Rates] = {}
        self._last_s = now_s()
        self.history: dict[str, deque[tuple[float, Counts]]] = {}
        self._queues_created = 0
        self._queues_deleted = 0
        broker.events.subscribe(self._count_event)

    # Looking

    def look(self) -> Iterator[None]:
        """Look at everything once, one step each time this is asked on."""
        now_s = self._now_s()
        elapsed_s, self._last_s = max(now_s - self._last_s, 0.001), now_s
        looked_at: dict[int, Counts] = {}
        rates: dict[int, Rates] = {}
        for subject, counts in self._everything():
            before = self._looked_at.get(id(subject))
            looked_at[id(subject)] = counts
            if before is not None:
                rates[id(subject)] = {name: max(n - before.get(name, 0), 0) / elapsed_s for name, n in counts.items()}
            if isinstance(subject, VirtualHost | Broker):
                name = subject.name if isinstance(subject, VirtualHost) else ""
                self.history.setdefault(name, deque(maxlen=RING)).append((now_s, counts))
            del subject  # the generator is left alone between two steps
            yield
        self._looked_at, self._rates = looked_at, rates
        kept = {"", *self._broker.vhost_by_name}
        self.history = {name: ring for name, ring in self.history.items() if name in kept}

    def _everything(self) -> Iterator[tuple[object, Counts]]:
        for vhost in list(self._broker.vhost_by_name.values()):
            for queue in list(vhost.queue_by_name.values()):
                yield queue, counted(queue.counters)
            for exchange in list(vhost.exchange_by_name.values()):
                yield exchange, {"publish_in": exchange.published_in, "publish_out": exchange.published_out}
            yield vhost, vhost_counts(vhost)
        for peer in self._broker.connections:
            facts = peer.facts()
            yield peer, {"recv_oct": facts.received[0], "send_oct": facts.sent[0]}
        yield self._broker, self._broker_counts() | self.churn()

    # Giving out

    def rates(self, subject: object) -> Rates:
        """Return the rates of a queue, exchange, connection, virtual host or of the broker; empty before two looks."""
        return self._rates.get(id(subject), {})

    def counts_of(self, vhost: VirtualHost) -> Counts:
        """Return what was counted in a virtual host."""
        if len(vhost.queue_by_name) > _SUMMED_AT_ONCE and vhost.name in self.history:
            return self.history[vhost.name][-1][1]
        return vhost_counts(vhost)

    def counts(self) -> Counts:
        """Return what was counted in all of the broker."""
        return self._broker_counts()

    def churn(self) -> Counts:
        """Return how many connections, channels and queues came and went."""
        connections = self._broker.connections
        channels = sum(peer.channel_count for peer in connections)
        return {
            "channel_closed": connections.channels_opened - channels,
            "channel_created": connections.channels_opened,
            "connection_closed": connections.opened - len(connections),
            "connection_created": connections.opened,
            "queue_created": self._queues_created,
            "queue_declared": self._queues_created,
            "queue_deleted": self._queues_deleted,
        }

    def _broker_counts(self) -> Counts:
        departed = self._broker.departed_traffic
        sums = counted(departed.departed) | {
            "publish": departed.published,
            "confirm": departed.confirmed,
            "return_unroutable": departed.returned,
            "drop_unroutable": departed.unroutable - departed.returned,
            "messages_ready": 0,
            "messages_unacknowledged": 0,
        }
        return added(sums, [self.counts_of(vhost) for vhost in self._broker.vhost_by_name.values()])

    def _count_event(self, event: Event) -> None:
        if event.name == "queue.created":
            self._queues_created += 1
        elif event.name == "queue.deleted":
            self._queues_deleted += 1


def counted(counters: Counters) -> Counts:
    """Return counters by name."""
    return {name: getattr(counters, name) for name in COUNTED}


def added(sums: Counts, others: Sequence[Counts]) -> Counts:
    """Return sums by name."""
    for other in others:
        for name, number in other.items():
            sums[name] = sums.get(name, 0) + number
    return sums


def vhost_counts(vhost: VirtualHost) -> Counts:
    """Sum up a virtual host. ``publish`` is what publishers sent, however many queues it went to."""
    traffic = vhost.traffic
    sums = added(counted(traffic.departed), [counted(queue.counters) for queue in vhost.queue_by_name.values()])
    return sums | {
        "publish": traffic.published,
        "confirm": traffic.confirmed,
        "return_unroutable": traffic.returned,
        "drop_unroutable": traffic.unroutable - traffic.returned,
        "messages_ready": sum(len(queue) for queue in vhost.queue_by_name.values()),
        "messages_unacknowledged": sum(queue.unsettled for queue in vhost.queue_by_name.values()),
    }
