"""The consuming end: deliveries counted in bytes, acknowledgements out of prebuilt blocks."""

from typing import Final

from benchmarks.load import wire
from benchmarks.load.link import Link, Progress

#: Acknowledgements built at a time (86 KB).
ACKS_PER_BLOCK: Final = 4096


class Acks:
    """An endless run of basic.ack frames, of which as many may go out as deliveries came in."""

    def __init__(self, link: Link, first_tag: int, every: int) -> None:
        self._link = link
        self._every = every
        self._next_tag = first_tag + every - 1
        self._block = memoryview(b"")
        self._position = 0
        self._sent_bytes = 0

    def settle(self, delivered: int) -> None:
        """Send the acknowledgements owed after ``delivered`` deliveries."""
        owed = delivered // self._every * wire.ACK_BYTES - self._sent_bytes
        while owed > 0 and not self._link.is_full:
            if self._position == len(self._block):
                self._build_block()
            sent = self._link.send(self._block[self._position : self._position + owed])
            self._position += sent
            self._sent_bytes += sent
            owed -= sent

    def is_settled(self, delivered: int) -> bool:
        """Every acknowledgement owed has left for the socket."""
        return self._sent_bytes == delivered // self._every * wire.ACK_BYTES

    def _build_block(self) -> None:
        multiple = self._every > 1
        self._block = memoryview(wire.acks(self._next_tag, self._every, ACKS_PER_BLOCK, multiple=multiple))
        self._next_tag += self._every * ACKS_PER_BLOCK
        self._position = 0


class Consumer:
    """Counts deliveries of one known size.

    Identical messages arrive as identical numbers of bytes, because the
    delivery tag has a fixed width: nothing needs to be parsed. ``early_bytes``
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
