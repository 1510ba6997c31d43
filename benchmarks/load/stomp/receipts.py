"""Counting and acknowledging during a measurement: frames by their NULs, receipts by their numbers."""

import re
from typing import Final

from benchmarks.load.link import Link
from benchmarks.load.publisher import NotConfirmed
from benchmarks.load.stomp import wire

#: Most acknowledgements built at a time.
ACKS_PER_BLOCK: Final = 4096

#: A publisher's messages have these numbers in turn, more than can be outstanding.
NUMBERS: Final = 8192

_RECEIPT: Final = re.compile(
    rb"\n*RECEIPT\n(?:[^\n]+\n)*?receipt-id:([0-9]{%d})\n(?:[^\n]+\n)*\n\0" % wire.NUMBER_DIGITS
)


class Frames:
    """Counts deliveries by their final NUL; the bodies contain none. Message-ids differ in length."""

    def __init__(self) -> None:
        self.delivered = 0
        self.is_whole = True

    def feed(self, data: memoryview) -> None:
        """Count NULs; only line ends may stand between a NUL and the next frame."""
        octets = bytes(data)
        self.delivered += octets.count(wire.END)
        rest = octets[octets.rfind(wire.END) + 1 :].strip(b"\n")
        self.is_whole = not rest and (self.is_whole or wire.END in octets)


class Acks:
    """The ACK frames of one consumer, one for every ``every``-th delivery from number ``first`` on."""

    def __init__(self, link: Link, before: bytes, first: int, every: int) -> None:
        self._link = link
        self._before = before
        self._first = first
        self._every = every
        self._built = 0
        self._unsent = memoryview(b"")

    def settle(self, delivered: int) -> None:
        """Send the acknowledgements due after ``delivered`` deliveries."""
        required = delivered // self._every
        while (self._unsent or self._built < required) and not self._link.is_full:
            if not self._unsent:
                self._build(min(required, self._built + ACKS_PER_BLOCK))
            self._unsent = self._unsent[self._link.send(self._unsent) :]

    def is_settled(self, delivered: int) -> bool:
        """Return whether every due acknowledgement is sent."""
        return not self._unsent and self._built == delivered // self._every

    def _build(self, upto: int) -> None:
        """Build the frames up to the ``upto``-th: each names the last delivery it acknowledges."""
        numbers = range(self._built + 1, upto + 1)
        octets = wire.acks(self._before, [self._first - 1 + number * self._every for number in numbers])
        self._unsent, self._built = memoryview(octets), upto


class Receipts:
    """The publishes with a receipt: all up to ``settled``, and scattered ones above it.

    At most a ``window`` of publishes are outstanding.
    """

    def __init__(self, window: int) -> None:
        self.settled = 0
        self._window = window
        self._scattered: set[int] = set()
        self._partial = b""

    def feed(self, data: memoryview) -> None:
        """Process RECEIPT frames, split at any byte."""
        octets = self._partial + bytes(data)
        whole = octets.rfind(wire.END) + 1
        self._partial = octets[whole:]
        numbers = _RECEIPT.findall(octets, 0, whole)
        if len(numbers) != octets.count(wire.END):
            raise NotConfirmed(octets.decode("latin-1"))
        for number in numbers:
            self._settle(int(number))

    def _settle(self, number: int) -> None:
        """Find the publish of a receipt: the next above ``settled`` with this number."""
        publish = self.settled + 1 + (number - self.settled) % NUMBERS
        if publish in self._scattered or publish > self.settled + self._window:
            raise NotConfirmed(f"receipt {number} came twice, or for a message not sent yet")
        self._scattered.add(publish)
        while self.settled + 1 in self._scattered:
            self.settled += 1
            self._scattered.discard(self.settled)
