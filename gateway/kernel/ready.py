"""The messages of a queue that wait for a consumer, in order; of a long queue, most of them as numbers only.

In order of position: those that were *returned* by a consumer, the *head* in memory, the *paged* segments whose
contents are in the store, and the *tail* in memory, which becomes the next segment. A short queue is all head. A paged
message costs some 30 bytes, whatever its size.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Final, Protocol

from gateway.kernel.segment import DURABLE, REDELIVERED, Segment

if TYPE_CHECKING:
    from gateway.kernel.changes import Enqueued
    from gateway.kernel.queued_message import QueuedMessage

#: How many messages leave memory, and come back to it, at a time; fewer where fewer may be resident.
SEGMENT_LENGTH: Final = 512


class Waiting(Protocol):
    """The waiting messages of one queue. ``length`` is how many, ``bytes`` the sum of their bodies' sizes."""

    length: int
    bytes: int

    def __len__(self) -> int:
        """Return ``length``."""
        ...

    def append(self, entry: "QueuedMessage") -> None:
        """Add the youngest message."""
        ...

    def popleft(self) -> "QueuedMessage":
        """Remove and return the message that is next. :raises IndexError: when there is none."""
        ...

    def peek(self) -> "QueuedMessage | None":
        """Return the message that is next, and leave it where it is; ``None`` when there is none."""
        ...

    def put_back(self, entry: "QueuedMessage") -> None:
        """Return a message to the place it was taken from (R88)."""
        ...

    def restore(self, change: "Enqueued", is_redelivered: bool) -> None:
        """Add the youngest message as recovery finds it: in the store."""
        ...

    def remove(self, positions: set[int]) -> "list[QueuedMessage]":
        """Remove those messages that are there, wherever they stand; return them in the order of their positions."""
        ...

    def positions(self) -> Iterator[int]:
        """Iterate over the positions of all messages, in no particular order."""
        ...

    def heads(self) -> "Iterator[QueuedMessage]":
        """Iterate over the oldest message of each priority there is."""
        ...

    def paged(self) -> Iterator[Segment]:
        """Iterate over the messages that are not in memory."""
        ...

    def clear(self) -> "tuple[list[QueuedMessage], list[Segment]]":
        """Remove everything; return the entries that were in memory and the segments that were not."""
        ...

    def resident(self) -> "Iterator[QueuedMessage]":
        """Iterate over the messages in memory, oldest first within each part."""
        ...


class Ready:
    """Waiting messages in the order of their positions.

    ``page_out`` turns entries into a segment whose contents are in the store, ``page_in`` brings one back. ``resident``
    is how many messages gather in memory before others are paged out.
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
        "bytes",
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
        self.bytes = 0
        self._returned: list[tuple[int, QueuedMessage]] = []
        self._head: deque[QueuedMessage] = deque()
        self._paged: deque[Segment] | None = None
        self._tail: list[QueuedMessage] = []

    def __len__(self) -> int:
        return self.length

    def append(self, entry: "QueuedMessage") -> None:
        """Add the youngest message."""
        self.length += 1
        self.bytes += len(entry.message.body)
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
            entry = heappop(self._returned)[1]
        else:
            entry = self._head.popleft()
        self.length -= 1
        self.bytes -= len(entry.message.body)
        return entry

    def peek(self) -> "QueuedMessage | None":
        """Return the oldest message, and leave it where it is; ``None`` when there is none."""
        if not self._head and self._paged is not None:
            self._refill()
        if self._returned and (not self._head or self._returned[0][0] < self._head[0].position):
            return self._returned[0][1]
        return self._head[0] if self._head else None

    def put_back(self, entry: "QueuedMessage") -> None:
        """Return a message to the place it was taken from (R88)."""
        self.length += 1
        self.bytes += len(entry.message.body)
        heappush(self._returned, (entry.position, entry))

    def restore(self, change: "Enqueued", is_redelivered: bool) -> None:
        """Add the youngest message as recovery finds it: in the store."""
        if self._paged is None:
            self._paged = deque()
        if not self._paged or len(self._paged[-1]) >= self._segment_length:
            self._paged.append(Segment())
        flags = DURABLE | REDELIVERED if is_redelivered else DURABLE
        self._paged[-1].add(
            change.position, change.message_id, change.enqueued_at_ms, change.delivery_count, change.body_size, flags
        )
        self.length += 1
        self.bytes += change.body_size

    def remove(self, positions: set[int]) -> "list[QueuedMessage]":
        """Remove those messages that are there, wherever they stand; return them in the order of their positions."""
        removed = [entry for entry in self.resident() if entry.position in positions]
        if removed:
            self._returned = [pair for pair in self._returned if pair[0] not in positions]
            heapify(self._returned)
            self._head = deque(entry for entry in self._head if entry.position not in positions)
            self._tail = [entry for entry in self._tail if entry.position not in positions]
        if self._paged is not None:
            removed += self._remove_paged(positions)
        self.length -= len(removed)
        self.bytes -= sum(len(entry.message.body) for entry in removed)
        return sorted(removed, key=lambda entry: entry.position)

    def _remove_paged(self, positions: set[int]) -> "list[QueuedMessage]":
        """Bring those back that are among the paged ones; segments that others are in become shorter."""
        assert self._paged is not None
        wanted = sorted(positions)
        removed: list[QueuedMessage] = []
        for segment in self._paged:
            first = bisect_left(wanted, segment.positions[0])
            if first == len(wanted) or wanted[first] > segment.positions[-1]:
                continue
            taken = segment.split(positions)
            if len(taken):
                removed += self._paged_in(taken)
        self._paged = deque(segment for segment in self._paged if len(segment))
        return removed

    def positions(self) -> Iterator[int]:
        """Iterate over the positions of all messages, in no particular order."""
        yield from (entry.position for entry in self.resident())
        for segment in self._paged or ():
            yield from segment.positions

    def heads(self) -> "Iterator[QueuedMessage]":
        """Iterate over the oldest message, if there is one."""
        if (head := self.peek()) is not None:
            yield head

    def paged(self) -> Iterator[Segment]:
        """Iterate over the messages that are not in memory, oldest first."""
        return iter(self._paged or ())

    def clear(self) -> "tuple[list[QueuedMessage], list[Segment]]":
        """Remove everything; return the entries that were in memory and the segments that were not."""
        entries = [entry for _, entry in sorted(self._returned, key=lambda pair: pair[0])]
        entries += [*self._head, *self._tail]
        segments = list(self._paged or ())
        self._returned, self._tail, self._paged, self.length, self.bytes = [], [], None, 0, 0
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
            self._head.extend(self._paged_in(self._paged.popleft()))
        if not self._head:
            self._head.extend(self._tail)
            self._tail = []
            if len(self._head) < self._resident:
                self._paged = None

    def _paged_in(self, segment: Segment) -> "list[QueuedMessage]":
        """Return the messages of a segment, having forgotten those that lost their contents."""
        entries = self._page_in(segment)
        if len(entries) < len(segment):
            self.length -= len(segment) - len(entries)
            self.bytes -= sum(segment.body_sizes) - sum(len(entry.message.body) for entry in entries)
        return entries
