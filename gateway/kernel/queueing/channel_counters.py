"""Message counters of one channel: per exchange for publishes, per queue for deliveries.

Each message is counted once; the channel's totals are computed on request.
"""

from collections.abc import Generator
from typing import TYPE_CHECKING, Final

from gateway.kernel.counters import Counters
from gateway.kernel.traffic import VhostTraffic

if TYPE_CHECKING:
    from gateway.kernel.queueing.consumer import ConsumedQueue

#: The number of queues whose counts are added to those of the virtual host at once; more take several turns.
MOST_AT_ONCE: Final = 1024

#: Queues between two readings of the clock.
_STEP: Final = 64


class PublishCounters:
    """The messages that one channel published to one exchange, and those of them that reached no queue."""

    __slots__ = ("drop_unroutable", "publish", "return_unroutable")

    def __init__(self) -> None:
        self.publish = 0
        self.return_unroutable = 0
        self.drop_unroutable = 0

    def add(self, other: "PublishCounters") -> None:
        """Add the counts of another."""
        self.publish += other.publish
        self.return_unroutable += other.return_unroutable
        self.drop_unroutable += other.drop_unroutable


class ChannelCounters:
    """The counters of one channel. ``by_exchange`` goes by name; the exchange may have been deleted.

    Callers keep the object that ``for_exchange`` or ``for_queue`` returned and count in it. Those of deleted queues are
    kept by queue type. While counts are added up in slices, ``_is_due`` is whether that has to be done again.
    """

    __slots__ = ("_departed", "_drained", "_forgotten", "_is_draining", "_is_due", "by_exchange", "by_queue")

    def __init__(self) -> None:
        self.by_exchange: dict[str, PublishCounters] = {}
        self.by_queue: dict[ConsumedQueue, Counters] = {}
        self._forgotten = PublishCounters()
        self._departed: dict[str, Counters] = {}
        self._drained: dict[str, Counters] = {}
        self._is_draining = False
        self._is_due = False

    def for_exchange(self, exchange_name: str) -> PublishCounters:
        """Return the counters for messages published to an exchange."""
        counters = self.by_exchange.get(exchange_name)
        if counters is None:
            counters = self.by_exchange[exchange_name] = PublishCounters()
        return counters

    def for_queue(self, queue: "ConsumedQueue") -> Counters:
        """Return the counters for messages from a queue."""
        counters = self.by_queue.get(queue)
        if counters is None:
            counters = self.by_queue[queue] = Counters()
        return counters

    def published(self) -> PublishCounters:
        """Return the totals of what was published."""
        total = PublishCounters()
        for counters in (self._forgotten, *self.by_exchange.values()):
            total.add(counters)
        return total

    def totals(self) -> Counters:
        """Return the totals of all counters, in the form of a queue's counters."""
        total = Counters()
        for counters in (*self._departed.values(), *self.by_queue.values()):
            total.add(counters)
        total.publish = self.published().publish
        return total

    def forget_exchanges(self) -> None:
        """Merge the counters of all exchanges into the totals; objects from ``for_exchange`` must no longer be used."""
        for counters in self.by_exchange.values():
            self._forgotten.add(counters)
        self.by_exchange.clear()

    def forget_deleted(self) -> None:
        """Merge the counters of deleted queues into the totals; no delivery of them may be unsettled."""
        for queue in [queue for queue in self.by_queue if queue.is_deleted]:
            self._departed.setdefault(queue.type_name, Counters()).add(self.by_queue.pop(queue))

    @property
    def has_published(self) -> bool:
        """Whether a message was published."""
        return bool(self.by_exchange) or self._forgotten.publish > 0

    def drain(self, protocol: str, traffic: VhostTraffic) -> None:
        """Add the deliveries since the last call to the totals of the virtual host: of many queues, in later turns.

        The last call may come when the channel is closed: its counters are read to the end.
        """
        if self._is_draining:
            self._is_due = True
        elif len(self.by_queue) > MOST_AT_ONCE:
            self._is_draining = True
            next(iter(self.by_queue)).clock.background.add_later(self._draining(protocol, traffic))
        elif self.by_queue or self._departed:
            for _ in self._adding(protocol, traffic):
                pass

    def _draining(self, protocol: str, traffic: VhostTraffic) -> Generator[None, None, None]:
        self._is_due = True
        while self._is_due:
            self._is_due = False
            yield from self._adding(protocol, traffic)
        self._is_draining = False

    def _adding(self, protocol: str, traffic: VhostTraffic) -> Generator[None, None, None]:
        """Return the steps that read all counters, and then add their increase to the totals of the virtual host."""
        sums = {queue_type: Counters() for queue_type in self._departed}
        for queue_type, counters in self._departed.items():
            sums[queue_type].add(counters)
        for number, (queue, counters) in enumerate(list(self.by_queue.items()), 1):
            if (total := sums.get(queue.type_name)) is None:
                total = sums[queue.type_name] = Counters()
            total.add(counters)
            if number % _STEP == 0:
                yield
        for queue_type, counters in sums.items():
            before = self._drained.get(queue_type) or Counters()
            traffic.delivered[protocol, queue_type].add_increase(counters, before)
        self._drained |= sums
