"""How many messages went where, since the start: plain numbers that only grow, read now and then by whoever lists them.

Counting costs one addition a message. Rates are the reader's business: it compares what it reads with what it read
last.
"""

from typing import Final

#: What is counted of a queue or a channel, by RabbitMQ's names. ``deliver`` and ``get`` wait to be settled.
COUNTED: Final = ("publish", "deliver", "deliver_no_ack", "get", "get_no_ack", "get_empty", "ack", "redeliver")


class Counters:
    """The messages of one queue or channel, and what became of them. Whoever moves a message counts it.

    ``dropped`` are those that a queue's limit had no room for.
    """

    __slots__ = (*COUNTED, "dropped")

    def __init__(self) -> None:
        self.publish = 0
        self.deliver = 0
        self.deliver_no_ack = 0
        self.get = 0
        self.get_no_ack = 0
        self.get_empty = 0
        self.ack = 0
        self.redeliver = 0
        self.dropped = 0

    def add(self, other: "Counters") -> None:
        """Take over the counts of somebody who is gone, so that sums never shrink."""
        for name in COUNTED:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.dropped += other.dropped


class Traffic:
    """The messages of a virtual host that no queue accounts for, and what its deleted queues and exchanges counted.

    ``published`` were taken from publishers; ``unroutable`` of them reached no queue, and of those ``returned`` went
    back; ``confirmed`` were answered. ``departed`` sums up the queues that are gone.
    """

    __slots__ = ("confirmed", "departed", "published", "returned", "unroutable")

    def __init__(self) -> None:
        self.published = 0
        self.unroutable = 0
        self.returned = 0
        self.confirmed = 0
        self.departed = Counters()

    def add(self, other: "Traffic") -> None:
        """Take over the counts of a virtual host that is gone."""
        self.published += other.published
        self.unroutable += other.unroutable
        self.returned += other.returned
        self.confirmed += other.confirmed
        self.departed.add(other.departed)


class Weight:
    """How many messages there are of some kind, and the bytes of their bodies."""

    __slots__ = ("bytes", "count")

    def __init__(self, count: int = 0, bytes: int = 0) -> None:
        self.count = count
        self.bytes = bytes

    def put(self, bytes: int) -> None:
        """Count one more."""
        self.count += 1
        self.bytes += bytes

    def take(self, bytes: int) -> None:
        """Count one less."""
        self.count -= 1
        self.bytes -= bytes

    def __add__(self, other: "Weight") -> "Weight":
        return Weight(self.count + other.count, self.bytes + other.bytes)
