"""What one channel counts, split by the other end: by exchange where it publishes, by queue where it consumes.

Nothing is counted twice: a channel's sums are worked out when somebody asks.
"""

from typing import TYPE_CHECKING

from gateway.kernel.counters import Counters

if TYPE_CHECKING:
    from gateway.kernel.queueing.queue import Queue


class Publishes:
    """The messages that one channel published to one exchange, and those of them that reached no queue."""

    __slots__ = ("drop_unroutable", "publish", "return_unroutable")

    def __init__(self) -> None:
        self.publish = 0
        self.return_unroutable = 0
        self.drop_unroutable = 0

    def add(self, other: "Publishes") -> None:
        """Take over the counts of another."""
        self.publish += other.publish
        self.return_unroutable += other.return_unroutable
        self.drop_unroutable += other.drop_unroutable


class Tallies:
    """The counts of one channel. ``by_exchange`` goes by name; the exchange need not be there any more.

    Whoever moves messages between the channel and one other end keeps the object for it and counts there.
    """

    __slots__ = ("_departed", "_forgotten", "by_exchange", "by_queue")

    def __init__(self) -> None:
        self.by_exchange: dict[str, Publishes] = {}
        self.by_queue: dict[Queue, Counters] = {}
        self._forgotten = Publishes()
        self._departed = Counters()

    def to(self, exchange_name: str) -> Publishes:
        """Return where messages published to an exchange are counted."""
        tally = self.by_exchange.get(exchange_name)
        if tally is None:
            tally = self.by_exchange[exchange_name] = Publishes()
        return tally

    def at(self, queue: "Queue") -> Counters:
        """Return where messages from a queue are counted."""
        tally = self.by_queue.get(queue)
        if tally is None:
            tally = self.by_queue[queue] = Counters()
        return tally

    def published(self) -> Publishes:
        """Sum up what was published."""
        total = Publishes()
        for tally in (self._forgotten, *self.by_exchange.values()):
            total.add(tally)
        return total

    def totals(self) -> Counters:
        """Sum up everything, as a queue counts."""
        total = Counters()
        for tally in (self._departed, *self.by_queue.values()):
            total.add(tally)
        total.publish = self.published().publish
        return total

    def forget_exchanges(self) -> None:
        """Keep the sums alone of what was published; nobody holds on to what ``to`` returned."""
        for tally in self.by_exchange.values():
            self._forgotten.add(tally)
        self.by_exchange.clear()

    def forget_deleted(self) -> None:
        """Keep the sums alone of what came from queues that are gone; nothing of theirs is still to be settled."""
        for queue in [queue for queue in self.by_queue if queue.is_deleted]:
            self._departed.add(self.by_queue.pop(queue))
