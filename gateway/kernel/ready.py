"""The messages of a queue that wait for a consumer, in order; of a long queue, most of them as numbers only.

In order of position: those that were *returned* by a consumer, the *head* in memory, the *paged* segments whose
contents are in the store, and the *tail* in memory, which becomes the next segment. A short queue is all head. A paged
message costs some 30 bytes, whatever its size.
"""

from array import array
from collections import deque
from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from gateway.kernel.queue import QueuedMessage

#: How many messages leave memory, and come back to it, at a time; fewer where fewer may be resident.
SEGMENT_LENGTH: Final = 512

#: What a segment remembers of a message besides numbers: that the store knows of it, that somebody may have seen it.
DURABLE: Final = 1
REDELIVERED: Final = 2


class Segment:
    """Waiting messages without their contents: parallel arrays, oldest first."""

    __slots__ = ("content_ids", "delivery_counts", "enqueued_at_ms", "flags", "positions")

    def __init__(self) -> None:
        self.positions = array("Q")
        self.content_ids = array("Q")
        self.enqueued_at_ms = array("Q")
        self.delivery_counts = array("L")
        self.flags = array("B")

    def __len__(self) -> int:
        return len(self.positions)

    def add(self, position: int, content_id: int, enqueued_at_ms: int, delivery_count: int, flags: int) -> None:
        """Append one message; ``flags`` is made of ``DURABLE`` and ``REDELIVERED``."""
        self.positions.append(position)
        self.content_ids.append(content_id)
        self.enqueued_at_ms.append(enqueued_at_ms)
        self.delivery_counts.append(delivery_count)
        self.flags.append(flags)


class Ready:
    """Owns the waiting messages of one queue.

    ``page_out`` turns entries into a segment whose contents are in the store, ``page_in`` brings one back. ``resident``
    is how many messages gather in memory before others are paged out. ``length`` is ``len(ready)``, without the call.
    """

    __slots__ = (
        "_head",
        "_page_in",
        "_page_out",
        "_paged",
        "_resident",
        "_returned",
        "_segment_length",
        "_tail",
        "length",
    )

    def __init__(
        self,
        page_out: "Callable[[list[QueuedMessage]], Segment]",
        page_in: "Callable[[Segment], list[QueuedMessage]]",
        resident: int,
    ) -> None:
        self._page_out = page_out
        self._page_in = page_in
        self._resident = resident
        self._segment_length = min(SEGMENT_LENGTH, resident)
        self.length = 0
        self._returned: list[tuple[int, QueuedMessage]] = []
        self._head: deque[QueuedMessage] = deque()
        self._paged: deque[Segment] | None = None
        self._tail: list[QueuedMessage] = []

    def __len__(self) -> int:
        return self.length

    def append(self, entry: "QueuedMessage") -> None:
        """Add the youngest message."""
        self.length += 1
        if self._paged is None:
            self._head.append(entry)
            if len(self._head) >= self._resident:
                self._paged = deque()
        else:
            self._tail.append(entry)
            if len(self._tail) >= self._segment_length:
                self._paged.append(self._page_out(self._tail))
                self._tail = []

    def popleft(self) -> "QueuedMessage":
        """Remove and return the oldest message. :raises IndexError: when there is none."""
        if not self._head and self._paged is not None:
            self._refill()
        if self._returned and (not self._head or self._returned[0][0] < self._head[0].position):
            self.length -= 1
            return heappop(self._returned)[1]
        entry = self._head.popleft()
        self.length -= 1
        return entry

    def put_back(self, entry: "QueuedMessage") -> None:
        """Return a message to the place it was taken from (R88)."""
        self.length += 1
        heappush(self._returned, (entry.position, entry))

    def restore(
        self, position: int, content_id: int, enqueued_at_ms: int, delivery_count: int, is_redelivered: bool
    ) -> None:
        """Add the youngest message as recovery finds it: in the store."""
        if self._paged is None:
            self._paged = deque()
        if not self._paged or len(self._paged[-1]) >= self._segment_length:
            self._paged.append(Segment())
        flags = DURABLE | REDELIVERED if is_redelivered else DURABLE
        self._paged[-1].add(position, content_id, enqueued_at_ms, delivery_count, flags)
        self.length += 1

    def clear(self) -> "tuple[list[QueuedMessage], list[Segment]]":
        """Remove everything; return the entries that were in memory and the segments that were not."""
        entries = [entry for _, entry in sorted(self._returned, key=lambda pair: pair[0])]
        entries += [*self._head, *self._tail]
        segments = list(self._paged or ())
        self._returned, self._tail, self._paged, self.length = [], [], None, 0
        self._head.clear()
        return entries, segments

    def resident(self) -> "Iterator[QueuedMessage]":
        """Iterate over the messages in memory, oldest first within each part."""
        yield from (entry for _, entry in self._returned)
        yield from self._head
        yield from self._tail

    def _refill(self) -> None:
        """Bring the next messages into the head: the oldest segment, else the tail."""
        assert self._paged is not None
        while not self._head and self._paged:
            segment = self._paged.popleft()
            entries = self._page_in(segment)
            self.length -= len(segment) - len(entries)
            self._head.extend(entries)
        if not self._head:
            self._head.extend(self._tail)
            self._tail = []
            if len(self._head) < self._resident:
                self._paged = None
