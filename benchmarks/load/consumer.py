"""The consuming end: deliveries counted in bytes."""

from typing import Protocol

from benchmarks.load.link import Link, Progress


class Acks(Protocol):
    """The acknowledgements of one consumer, in the bytes of its protocol."""

    def settle(self, delivered: int) -> None:
        """Send the acknowledgements owed after ``delivered`` deliveries, as far as the link takes them."""

    def is_settled(self, delivered: int) -> bool:
        """Every acknowledgement owed has left for the socket."""
        ...


class Consumer:
    """Counts deliveries of one known size.

    Identical messages arrive as identical numbers of bytes where a protocol
    numbers them with a fixed width: nothing needs to be parsed. ``early_bytes``
    arrived before the link existed.
    """

    def __init__(self, link: Link, delivery_bytes: int, acks: Acks | None, early_bytes: int = 0) -> None:
        self.link = link
        self.delivered = early_bytes // delivery_bytes
        self.received = Progress()
        self._acks = acks
        self._delivery_bytes = delivery_bytes
        self._received_bytes = early_bytes

    @property
    def is_settled(self) -> bool:
        """No delivery is half read and no acknowledgement is held back."""
        is_whole = self._received_bytes == self.delivered * self._delivery_bytes
        return is_whole and (self._acks is None or self._acks.is_settled(self.delivered))

    def read(self) -> None:
        """Count what has arrived and acknowledge it."""
        self._received_bytes += len(self.link.receive())
        self.delivered = self._received_bytes // self._delivery_bytes
        self.received.reached(self.delivered)
        self.write()

    def write(self) -> None:
        """Send the acknowledgements owed."""
        if self._acks is not None:
            self._acks.settle(self.delivered)
