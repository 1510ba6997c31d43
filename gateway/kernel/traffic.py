"""The traffic of one virtual host: publishes by protocol, deliveries by protocol and queue type, dead letters.

Numbers only grow. Publishes are counted here, one addition for each number; deliveries are counted by the channels and
added here from time to time, so that a delivery costs nothing more.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from gateway.kernel.counters import Counters

#: The classes of body sizes, in bytes: each has the bodies up to its bound; one class more has the larger ones.
SIZE_BOUNDS: Final = (100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 50_000_000, 100_000_000)

#: The queue type of deliveries with QoS 0, as RabbitMQ counts them; in listings such a queue is a classic one.
QOS0_QUEUE: Final = "mqtt_qos0"

#: Bodies up to this size, which most have, are in the first class.
SMALL: Final = 100


class Traffic:
    """The messages that were published over one protocol in one virtual host.

    ``small`` is the number of those with a body of at most ``SMALL`` bytes, ``bytes`` is the sum of all body sizes.
    ``further_routes`` is the number of queues that they were routed to beyond one for each message; a message without a
    queue counts as -1. ``unroutable`` ones reached no queue, ``returned`` of those were sent back.
    ``expecting_confirms`` is the number of those whose publishers want confirms, ``confirmed`` of those that were
    confirmed, both without ``confirmed_at_once``: those that were confirmed within their publish.
    """

    __slots__ = (
        "_larger",
        "bytes",
        "confirmed",
        "confirmed_at_once",
        "expecting_confirms",
        "further_routes",
        "returned",
        "small",
        "unroutable",
    )

    def __init__(self) -> None:
        self.bytes = 0
        self.confirmed = 0
        self.confirmed_at_once = 0
        self.expecting_confirms = 0
        self.further_routes = 0
        self.returned = 0
        self.small = 0
        self.unroutable = 0
        self._larger = [0] * len(SIZE_BOUNDS)

    @property
    def sizes(self) -> list[int]:
        """The number of messages by class of body size; see ``SIZE_BOUNDS``."""
        return [self.small, *self._larger]

    @property
    def published(self) -> int:
        """The number of messages."""
        return self.small + sum(self._larger)

    @property
    def routed(self) -> int:
        """The number of messages in queues that they became."""
        return self.published + self.further_routes

    def count(self, size: int) -> None:
        """Count a message with a body of ``size`` bytes."""
        self.bytes += size
        if size <= SMALL:
            self.small += 1
        else:
            self._larger[bisect_left(SIZE_BOUNDS, size) - 1] += 1

    def count_all(self, sizes: list[int]) -> None:
        """Count several messages; those with bodies of the same size in a row are counted at once."""
        last = number = 0
        for size in sizes:
            if size != last:
                self._count_equal(number, last)
                last, number = size, 0
            number += 1
        self._count_equal(number, last)

    def _count_equal(self, number: int, size: int) -> None:
        """Count some messages with bodies of the same size."""
        self.bytes += number * size
        if size <= SMALL:
            self.small += number
        else:
            self._larger[bisect_left(SIZE_BOUNDS, size) - 1] += number

    def add(self, other: "Traffic") -> None:
        """Add the counts of another."""
        self.bytes += other.bytes
        self.confirmed += other.confirmed
        self.confirmed_at_once += other.confirmed_at_once
        self.expecting_confirms += other.expecting_confirms
        self.further_routes += other.further_routes
        self.returned += other.returned
        self.small += other.small
        self.unroutable += other.unroutable
        for number, count in enumerate(other._larger):
            self._larger[number] += count


class VhostTraffic:
    """The traffic of one virtual host, or of all that were deleted.

    ``by_protocol`` has the publishes by protocol, ``""`` those of the broker itself. ``delivered`` has the deliveries
    by protocol and queue type, as far as their channels have added them. ``departed`` has the totals of deleted queues
    by queue type. ``dead_letters`` counts by queue type, strategy and reason; the reason ``confirmed`` counts those
    that every target queue took.
    """

    __slots__ = ("_last", "_last_protocol", "by_protocol", "dead_letters", "delivered", "departed")

    def __init__(self) -> None:
        self.by_protocol: defaultdict[str, Traffic] = defaultdict(Traffic)
        self._last: Traffic | None = None
        self._last_protocol = ""
        self.delivered: defaultdict[tuple[str, str], Counters] = defaultdict(Counters)
        self.departed: defaultdict[str, Counters] = defaultdict(Counters)
        self.dead_letters: defaultdict[tuple[str, str, str], int] = defaultdict(int)

    def published_by(self, protocol: str) -> Traffic:
        """Return the traffic of the publishes of a protocol; usually the same as for the last message."""
        last = self._last
        if last is None or protocol is not self._last_protocol:
            last = self._last = self.by_protocol[protocol]
            self._last_protocol = protocol
        return last

    # Totals of all protocols

    @property
    def published(self) -> int:
        """The number of messages."""
        return sum(traffic.published for traffic in self._all())

    @property
    def unroutable(self) -> int:
        """The number of messages that reached no queue."""
        return sum(traffic.unroutable for traffic in self._all())

    @property
    def returned(self) -> int:
        """The number of messages that were sent back to their publishers."""
        return sum(traffic.returned for traffic in self._all())

    @property
    def confirmed(self) -> int:
        """The number of confirmed messages."""
        return sum(traffic.confirmed + traffic.confirmed_at_once for traffic in self._all())

    def departed_total(self) -> Counters:
        """Return the totals of deleted queues of all types."""
        total = Counters()
        for counters in self.departed.values():
            total.add(counters)
        return total

    def take(self, other: "VhostTraffic") -> None:
        """Move the traffic of a deleted virtual host here."""
        for protocol, traffic in other.by_protocol.items():
            self.by_protocol[protocol].add(traffic)
        for key, counters in other.delivered.items():
            self.delivered[key].add(counters)
        for queue_type, counters in other.departed.items():
            self.departed[queue_type].add(counters)
        for cause, count in other.dead_letters.items():
            self.dead_letters[cause] += count
        for counts in (other.by_protocol, other.delivered, other.departed, other.dead_letters):
            counts.clear()
        other._last = None

    def _all(self) -> "Iterator[Traffic]":
        return iter(self.by_protocol.values())
