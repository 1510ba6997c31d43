"""The consuming side: deliveries are counted, and acknowledged in bulk."""

from typing import Protocol

from benchmarks.load.link import Link, Progress


class Acks(Protocol):
    """The acknowledgements of one consumer, in the bytes of its protocol."""

    def settle(self, delivered: int) -> None:
        """Send the acknowledgements due after ``delivered`` deliveries, as far as the link accepts them."""

    def is_settled(self, delivered: int) -> bool:
        """Return whether every due acknowledgement is sent."""
        ...


class Arrivals(Protocol):
    """The deliveries at one consumer, in the bytes of its protocol. ``delivered`` counts whole deliveries."""

    delivered: int

    @property
    def is_whole(self) -> bool:
        """Return whether no delivery is incomplete."""
        ...

    def feed(self, data: memoryview) -> None:
        """Count the deliveries that these bytes complete, split at any byte."""


class Sizes:
    """Counts deliveries of one known size.

    Identical messages have the same size where the protocol numbers them with a fixed width, so nothing needs to be
    parsed. ``early_bytes`` arrived before the link existed.
    """

    def __init__(self, delivery_bytes: int, early_bytes: int = 0) -> None:
        self.delivered = early_bytes // delivery_bytes
        self._delivery_bytes = delivery_bytes
        self._received_bytes = early_bytes

    @property
    def is_whole(self) -> bool:
        """Return whether no delivery is incomplete."""
        return self._received_bytes == self.delivered * self._delivery_bytes

    def feed(self, data: memoryview) -> None:
        """Count by size."""
        self._received_bytes += len(data)
        self.delivered = self._received_bytes // self._delivery_bytes


class Consumer:
    """Receives deliveries and acknowledges them."""

    def __init__(self, link: Link, arrivals: Arrivals, acks: Acks | None) -> None:
        self.link = link
        self.received = Progress()
        self._arrivals = arrivals
        self._acks = acks

    @property
    def delivered(self) -> int:
        """The number of whole deliveries so far."""
        return self._arrivals.delivered

    @property
    def is_settled(self) -> bool:
        """Return whether no delivery is incomplete and no acknowledgement is unsent."""
        return self._arrivals.is_whole and (self._acks is None or self._acks.is_settled(self.delivered))

    def read(self) -> None:
        """Count arrived deliveries and acknowledge them."""
        self._arrivals.feed(self.link.receive())
        self.received.reached(self.delivered)
        self.write()

    def write(self) -> None:
        """Send the due acknowledgements."""
        if self._acks is not None:
            self._acks.settle(self.delivered)
