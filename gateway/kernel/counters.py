"""Message counters since the start of the node: numbers that only grow.

Counting costs one addition a message. Readers compute rates from the differences between two readings.
"""

from typing import Final

#: The counters of a queue or a channel, by RabbitMQ's names. ``deliver`` and ``get`` require acknowledgements.
COUNTED: Final = ("publish", "deliver", "deliver_no_ack", "get", "get_no_ack", "get_empty", "ack", "redeliver")


class Counters:
    """The message counters of one queue or channel.

    ``dropped`` counts the messages that a queue's length limit dropped or rejected; ``expired``, ``rejected`` and
    ``over_limit`` those that were dropped because of their TTL, their consumer and the delivery limit.
    """

    __slots__ = (*COUNTED, "dropped", "expired", "over_limit", "rejected")

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
        self.expired = 0
        self.over_limit = 0
        self.rejected = 0

    def count_drop(self, reason: str) -> None:
        """Count a message that its queue dropped, by the name of the reason in ``x-death``."""
        if reason == "maxlen":
            self.dropped += 1
        elif reason == "expired":
            self.expired += 1
        elif reason == "rejected":
            self.rejected += 1
        else:
            self.over_limit += 1

    def drops(self) -> dict[str, int]:
        """Return the numbers of dropped messages by reason."""
        return {
            "expired": self.expired,
            "maxlen": self.dropped,
            "rejected": self.rejected,
            "delivery_limit": self.over_limit,
        }

    def total(self) -> int:
        """Return the sum of all counters, which grows whenever one does."""
        taken = self.deliver + self.deliver_no_ack + self.get + self.get_no_ack + self.get_empty
        dropped = self.dropped + self.expired + self.over_limit + self.rejected
        return self.publish + taken + self.ack + self.redeliver + dropped

    def add(self, other: "Counters") -> None:
        """Add the counts of another, one by one: a channel adds up those of 10,000 queues in a turn."""
        self.publish += other.publish
        self.deliver += other.deliver
        self.deliver_no_ack += other.deliver_no_ack
        self.get += other.get
        self.get_no_ack += other.get_no_ack
        self.get_empty += other.get_empty
        self.ack += other.ack
        self.redeliver += other.redeliver
        self.dropped += other.dropped
        self.expired += other.expired
        self.over_limit += other.over_limit
        self.rejected += other.rejected

    def add_increase(self, now: "Counters", before: "Counters") -> None:
        """Add the difference between two readings of other counters."""
        for name in COUNTED:
            setattr(self, name, getattr(self, name) + getattr(now, name) - getattr(before, name))


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
