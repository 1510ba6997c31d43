"""The publishing end: identical frames out of one prebuilt buffer, confirms counted in bulk."""

from typing import Final

from benchmarks.load import wire
from benchmarks.load.link import Link, Progress

#: The prebuilt buffer: small enough to stay in a processor's cache, large enough for one send.
BUFFER_BYTES: Final = 256 * 1024
#: A publisher waits until its window has room for this much, or for an eighth of the window:
#: one message per send would measure the generator.
BURST_BYTES: Final = 16 * 1024


class NotConfirmed(Exception):
    """The broker sent something else than basic.ack to a publisher."""


class Confirms:
    """Which publishes are confirmed: all up to ``settled``, and some scattered ones above it."""

    def __init__(self, settled: int) -> None:
        self.settled = settled
        self._scattered: set[int] = set()
        self._partial = b""

    def feed(self, data: memoryview) -> None:
        """Take in basic.ack frames, cut anywhere."""
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


class Publisher:
    """Sends one message over and over, ``limit`` times at most, as far as ``allow`` lets it."""

    def __init__(self, link: Link, message: bytes, window: int, limit: int, confirms: Confirms | None) -> None:
        self.link = link
        self.confirms = confirms
        self.sent = Progress()
        self.confirmed = Progress()
        self._window = window
        self._limit = limit
        self._size = len(message)
        repeats = BUFFER_BYTES // self._size + 1
        self._buffer = memoryview(message * repeats)
        self._burst_bytes = min(max(1, window // 8) * self._size, BURST_BYTES)
        self._sent_bytes = 0
        self._allowed_bytes = 0
        self._confirmed_before = confirms.settled if confirms else 0

    @property
    def is_exhausted(self) -> bool:
        """As many messages were begun as ever will be."""
        return self.messages >= self._limit

    @property
    def messages(self) -> int:
        """Messages begun, the last one perhaps not yet sent to its end."""
        return -(-self._sent_bytes // self._size)

    @property
    def confirmed_messages(self) -> int:
        """Messages confirmed so far; meaningful with confirms only."""
        return self.confirms.settled - self._confirmed_before if self.confirms else 0

    def allow(self, settled: int) -> None:
        """Let the window slide to ``settled`` messages and send what then fits into it."""
        allowed = settled + self._window
        if allowed >= self._limit:
            allowed, self._burst_bytes = self._limit, 1
        self._allowed_bytes = allowed * self._size
        self.write()

    def finish(self) -> None:
        """Begin no further message, but send the last one to its end."""
        self._limit = self.messages
        self.allow(self._limit)

    def write(self) -> None:
        """Send while the window has room for a burst and the socket takes it."""
        room = self._allowed_bytes - self._sent_bytes
        while room >= self._burst_bytes and not self.link.is_full:
            start = self._sent_bytes % len(self._buffer)
            sent = self.link.send(self._buffer[start : start + room])
            self._sent_bytes += sent
            room -= sent
            self.sent.reached(self._sent_bytes // self._size)

    def read(self) -> None:
        """Take in confirms; anything else from the broker is an error."""
        data = self.link.receive()
        if self.confirms is None:
            raise NotConfirmed(bytes(data).decode("latin-1"))
        self.confirms.feed(data)
        self.confirmed.reached(self.confirmed_messages)
