"""The consuming end: deliveries counted, and acknowledged in bulk."""

from typing import Protocol

from benchmarks.load.link import Link, Progress


class Acks(Protocol):
    """The acknowledgements of one consumer, in the bytes of its protocol."""

    def settle(self, delivered: int) -> None:
        """Send the acknowledgements owed after ``delivered`` deliveries, as far as the link takes them."""

    def is_settled(self, delivered: int) -> bool:
        """Every acknowledgement owed has left for the socket."""
        ...


class Arrivals(Protocol):
    """What has arrived at one consumer, in the bytes of its protocol. ``delivered`` counts whole deliveries."""

    delivered: int

    @property
    def is_whole(self) -> bool:
        """No delivery is half read."""
        ...

    def feed(self, data: memoryview) -> None:
        """Count the deliveries these bytes complete, cut anywhere."""


class Sizes:
    """Counts deliveries of one known size.

    Identical messages arrive as identical numbers of bytes where a protocol
    numbers them with a fixed width: nothing needs to be parsed. ``early_bytes``
    arrived before the link existed.
    """

    def __init__(self, delivery_bytes: int, early_bytes: int = 0) -> None:
        self.delivered = early_bytes // delivery_bytes
        self._delivery_bytes = delivery_bytes
        self._received_bytes = early_bytes

    @property
    def is_whole(self) -> bool:
        """No delivery is half read."""
        return self._received_bytes == self.delivered * self._delivery_bytes

    def feed(self, data: memoryview) -> None:
        """Count by size."""
        self._received_bytes += len(data)
        self.delivered = self._received_bytes // self._delivery_bytes


class Consumer:
    """Takes deliveries in and acknowledges them."""

    def __init__(self, link: Link, arrivals: Arrivals, acks: Acks | None) -> None:
        self.link = link
        self.received = Progress()
        self._arrivals = arrivals
        self._acks = acks

    @property
    def delivered(self) -> int:
        """Whole deliveries so far."""
        return self._arrivals.delivered

    @property
    def is_settled(self) -> bool:
        """No delivery is half read and no acknowledgement is held back."""
        return self._arrivals.is_whole and (self._acks is None or self._acks.is_settled(self.delivered))

    def read(self) -> None:
        """Count what has arrived and acknowledge it."""
        self._arrivals.feed(self.link.receive())
        self.received.reached(self.delivered)
        self.write()

    def write(self) -> None:
        """Send the acknowledgements owed."""
        if self._acks is not None:
            self._acks.settle(self.delivered)
