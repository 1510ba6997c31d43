"""Message counters since the start of the node: numbers that only grow.

Counting costs one addition a message. Readers compute rates from the differences between two readings.
"""

from typing import Final

#: The counters of a queue or a channel, by RabbitMQ's names. ``deliver`` and ``get`` require acknowledgements.
COUNTED: Final = ("publish", "deliver", "deliver_no_ack", "get", "get_no_ack", "get_empty", "ack", "redeliver")


class Counters:
    """The message counters of one queue or channel.

    ``dropped`` counts the messages that a queue's length limit dropped or rejected.
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
        """Add the counts of a deleted object, so that totals never decrease."""
        for name in COUNTED:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.dropped += other.dropped


class Traffic:
    """The counters of a virtual host that belong to no queue, and the totals of its deleted queues and exchanges.

    ``published`` were accepted from publishers; ``unroutable`` of them reached no queue, and ``returned`` of those were
    sent back; ``confirmed`` were confirmed. ``departed`` is the total of the deleted queues.
    """

    __slots__ = ("confirmed", "departed", "published", "returned", "unroutable")

    def __init__(self) -> None:
        self.published = 0
        self.unroutable = 0
        self.returned = 0
        self.confirmed = 0
        self.departed = Counters()

    def add(self, other: "Traffic") -> None:
        """Add the counts of a deleted virtual host."""
        self.published += other.published
        self.unroutable += other.unroutable
        self.returned += other.returned
        self.confirmed += other.confirmed
        self.departed.add(other.departed)


class Weight:
    """A number of messages and the total size of their bodies."""

    __slots__ = ("bytes", "count")

    def __init__(self, count: int = 0, bytes: int = 0) -> None:
        self.count = count
        self.bytes = bytes

    def put(self, bytes: int) -> None:
        """Add one message."""
        self.count += 1
        self.bytes += bytes

    def take(self, bytes: int) -> None:
        """Subtract one message."""
        self.count -= 1
        self.bytes -= bytes

    def __add__(self, other: "Weight") -> "Weight":
        return Weight(self.count + other.count, self.bytes + other.bytes)
