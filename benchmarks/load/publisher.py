"""The publishing side: messages of one size from one prebuilt buffer, confirms counted in bulk."""

from dataclasses import dataclass
from typing import Final, Protocol

from benchmarks.load.link import Link, Progress

#: The prebuilt buffer: small enough for a processor's cache, large enough for one send.
BUFFER_BYTES: Final = 256 * 1024
#: A publisher waits until its window has room for this much, or for an eighth of the window: one message per send
#: would measure the generator.
BURST_BYTES: Final = 16 * 1024


class NotConfirmed(Exception):
    """The broker sent something other than confirms to a publisher."""


class Confirms(Protocol):
    """The confirms of one publisher, in the bytes of its protocol: all publishes up to ``settled`` are confirmed."""

    settled: int

    def feed(self, data: memoryview) -> None:
        """Process confirms, split at any byte. :raises NotConfirmed: for anything else."""


@dataclass(frozen=True, slots=True)
class Cycle:
    """Messages that are sent repeatedly in order: the bytes of all of them, ``size`` bytes each."""

    octets: bytes
    size: int

    @property
    def first(self) -> bytes:
        """Return one message."""
        return self.octets[: self.size]

    def take(self, messages: int) -> bytes:
        """Return this many messages from the beginning."""
        repeats = messages * self.size // len(self.octets) + 1
        return (self.octets * repeats)[: messages * self.size]


class Publisher:
    """Sends a cycle of messages, up to ``limit``, within the window that ``allow`` sets."""

    def __init__(self, link: Link, cycle: Cycle, window: int, limit: int, confirms: Confirms | None) -> None:
        self.link = link
        self.confirms = confirms
        self.sent = Progress()
        self.confirmed = Progress()
        self._window = window
        self._limit = limit
        self._size = cycle.size
        repeats = BUFFER_BYTES // len(cycle.octets) + 1
        self._buffer = memoryview(cycle.octets * repeats)
        self._burst_bytes = min(max(1, window // 8) * self._size, BURST_BYTES)
        self._sent_bytes = 0
        self._allowed_bytes = 0
        self._confirmed_before = confirms.settled if confirms else 0

    @property
    def is_exhausted(self) -> bool:
        """Return whether the limit of messages is reached."""
        return self.messages >= self._limit

    @property
    def messages(self) -> int:
        """The number of messages begun, the last one possibly incomplete."""
        return -(-self._sent_bytes // self._size)

    @property
    def confirmed_messages(self) -> int:
        """The number of messages confirmed so far; meaningful with confirms only."""
        return self.confirms.settled - self._confirmed_before if self.confirms else 0

    def allow(self, settled: int) -> None:
        """Move the window to ``settled`` messages and send what fits into it."""
        allowed = settled + self._window
        if allowed >= self._limit:
            allowed, self._burst_bytes = self._limit, 1
        self._allowed_bytes = allowed * self._size
        self.write()

    def finish(self) -> None:
        """Begin no further message, but complete the last one."""
        self._limit = self.messages
        self.allow(self._limit)

    def write(self) -> None:
        """Send while the window has room for a burst and the socket accepts it."""
        room = self._allowed_bytes - self._sent_bytes
        while room >= self._burst_bytes and not self.link.is_full:
            start = self._sent_bytes % len(self._buffer)
            sent = self.link.send(self._buffer[start : start + room])
            self._sent_bytes += sent
            room -= sent
            self.sent.reached(self._sent_bytes // self._size)

    def read(self) -> None:
        """Process confirms; anything else from the broker is an error."""
        data = self.link.receive()
        if self.confirms is None:
            raise NotConfirmed(bytes(data).decode("latin-1"))
        self.confirms.feed(data)
        self.confirmed.reached(self.confirmed_messages)
