"""Acknowledgements in both directions: the consumer's from prebuilt blocks, the broker's counted one by one."""

from typing import Final

from benchmarks.load.amqp import wire
from benchmarks.load.link import Link
from benchmarks.load.publisher import NotConfirmed

#: Acknowledgements built at a time (86 KB).
ACKS_PER_BLOCK: Final = 4096


class Acks:
    """An endless sequence of basic.ack frames, sent as deliveries arrive."""

    def __init__(self, link: Link, first_tag: int, every: int) -> None:
        self._link = link
        self._every = every
        self._next_tag = first_tag + every - 1
        self._block = memoryview(b"")
        self._position = 0
        self._sent_bytes = 0

    def settle(self, delivered: int) -> None:
        """Send the acknowledgements due after ``delivered`` deliveries."""
        required = delivered // self._every * wire.ACK_BYTES - self._sent_bytes
        while required > 0 and not self._link.is_full:
            if self._position == len(self._block):
                self._build_block()
            sent = self._link.send(self._block[self._position : self._position + required])
            self._position += sent
            self._sent_bytes += sent
            required -= sent

    def is_settled(self, delivered: int) -> bool:
        """Return whether every due acknowledgement is sent."""
        return self._sent_bytes == delivered // self._every * wire.ACK_BYTES

    def _build_block(self) -> None:
        multiple = self._every > 1
        self._block = memoryview(wire.acks(self._next_tag, self._every, ACKS_PER_BLOCK, multiple=multiple))
        self._next_tag += self._every * ACKS_PER_BLOCK
        self._position = 0


class Confirms:
    """The confirmed publishes: all up to ``settled``, and scattered ones above it."""

    def __init__(self, settled: int) -> None:
        self.settled = settled
        self._scattered: set[int] = set()
        self._partial = b""

    def feed(self, data: memoryview) -> None:
        """Process basic.ack frames, split at any byte."""
        octets = self._partial + bytes(data)
        whole = len(octets) // wire.ACK_BYTES * wire.ACK_BYTES
        self._partial = octets[whole:]
        for _, method, tag, multiple, end in wire.ACK.iter_unpack(octets[:whole]):
            if method != wire.BASIC_ACK or end != wire.FRAME_END:
                raise NotConfirmed(octets.decode("latin-1"))
            self._confirm(tag, multiple)

    def _confirm(self, tag: int, multiple: int) -> None:
        if multiple:
            self.settled = max(self.settled, tag)
            self._scattered = {each for each in self._scattered if each > self.settled}
        elif tag == self.settled + 1:
            self.settled = tag
        else:
            self._scattered.add(tag)
        while self.settled + 1 in self._scattered:
            self.settled += 1
            self._scattered.discard(self.settled)
