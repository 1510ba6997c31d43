"""Messages requeued by consumers: each waits at its old position; if there are many, most are paged out."""

from bisect import bisect_left
from heapq import heappop, heappush
from itertools import takewhile
from typing import TYPE_CHECKING, Final

from gateway.kernel.messages.paged_segment import PagedSegment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gateway.kernel.backlog.paging import Paging
    from gateway.kernel.messages.queued_message import QueuedMessage

#: Bytes of memory per resident message before some are paged out: 64 MiB by default. Several hundred thousand small
#: messages requeued at once stay in memory, since paging them would take longer.
BYTES_EACH: Final = 32 * 1024

#: The approximate memory of a message besides its body, in bytes.
MESSAGE_SIZE: Final = 100

#: The number of bytes in a segment.
SEGMENT_BYTES: Final = 2**20

#: Messages that are paged out at once when the memory limit is exceeded.
PAGED_AT_ONCE: Final = 4096


class Requeued:
    """Requeued messages by position, and in the order they were requeued.

    ``first`` is the lowest position, undefined while there is no message. When they exceed the memory limit set by
    ``resident``, some are paged out in segments of ``segment_length``, and paged in by segment.
    ``lost`` and ``lost_bytes`` count messages whose contents were missing; the owner subtracts and resets them.
    """

    __slots__ = (
        "_bytes",
        "_entries",
        "_most_bytes",
        "_numbers",
        "_paging",
        "_positions",
        "_segment_length",
        "_segments",
        "first",
        "lost",
        "lost_bytes",
    )

    def __init__(self, paging: "Paging", resident: int, segment_length: int) -> None:
        self._paging = paging
        self._most_bytes = resident * BYTES_EACH
        self._segment_length = segment_length
        self._numbers: dict[int, int] = {}  # the return number by position; the latest last
        self._entries: dict[int, QueuedMessage] = {}
        self._segments: dict[int, PagedSegment] = {}  # by each of their positions
        self._positions: list[int] = []  # a heap; positions removed from the middle are skipped
        self._bytes = 0
        self.first = 0
        self.lost = 0
        self.lost_bytes = 0

    def __len__(self) -> int:
        return len(self._numbers)

    def __iter__(self) -> "Iterator[QueuedMessage]":
        """Iterate over the messages in memory, in the order they were requeued."""
        for position in self._numbers:  # a loop: a compiled generator expression would build a list
            entry = self._entries.get(position)
            if entry is not None:
                yield entry

    def add(self, entry: "QueuedMessage", number: int) -> None:
        """Add a message; ``number`` is the rising number of this return."""
        self._numbers[entry.position] = number
        self._entries[entry.position] = entry
        self._bytes += _size(entry)
        heappush(self._positions, entry.position)
        self.first = self._positions[0]
        if self._bytes > self._most_bytes:
            self._page_out()

    def peek(self) -> "QueuedMessage | None":
        """Return the message at the first position; ``None`` if none is left, because contents were lost."""
        while self._numbers:
            entry = self._entries.get(self.first)
            if entry is not None:
                return entry
            self._page_in(self._segments[self.first])
            self._advance()
        return None

    def find(self, position: int) -> "QueuedMessage | None":
        """Return the message at a position, ``None`` if there is none."""
        segment = self._segments.get(position)
        if segment is not None:
            self._page_in(segment)
            self._advance()
        return self._entries.get(position)

    def positions(self) -> list[int]:
        """Return the positions of all messages, in no particular order."""
        return list(self._numbers)

    def look_at(self, position: int) -> "QueuedMessage | None":
        """Return the message at a position without paging it in; ``None`` if there is none, or its content is lost."""
        segment = self._segments.get(position)
        if segment is None:
            return self._entries.get(position)
        row = bisect_left(segment.positions, position)
        return self._paging.peek(segment.part(row, row + 1))[0]

    def pop(self, position: int) -> "QueuedMessage | None":
        """Remove and return the message at a position, ``None`` if there is none."""
        entry = self.find(position)
        if entry is not None:
            del self._numbers[position], self._entries[position]
            self._bytes -= _size(entry)
            self._advance()
        return entry

    def since(self, number: int) -> list[int]:
        """Return the positions of messages requeued after this number."""
        latest_first = reversed(self._numbers.items())
        return [position for position, _ in takewhile(lambda each: each[1] > number, latest_first)]

    def segments(self) -> list[PagedSegment]:
        """Return the paged segments."""
        return list({id(segment): segment for segment in self._segments.values()}.values())

    def _advance(self) -> None:
        """Update the first position."""
        positions = self._positions
        while positions and positions[0] not in self._numbers:
            heappop(positions)
        if positions:
            self.first = positions[0]

    def _page_out(self) -> None:
        """Page out some messages: those with high positions, if they were requeued in order or in reverse order.

        The work of one call is bounded. Memory stays limited: the next call comes when the limit is exceeded again.
        """
        entries = self._entries
        newest, oldest = next(reversed(entries)), next(iter(entries))
        positions = reversed(entries) if newest > oldest else iter(entries)
        chosen: list[QueuedMessage] = []
        size = 0
        for position in positions:
            if len(chosen) >= PAGED_AT_ONCE or size >= self._most_bytes // 2:
                break
            chosen.append(entries[position])
            size += _size(entries[position])
        chosen.sort(key=_position)
        run: list[QueuedMessage] = []
        run_bytes = 0
        for entry in chosen:
            run.append(entry)
            run_bytes += len(entry.message.body)
            if len(run) >= self._segment_length or run_bytes >= SEGMENT_BYTES:
                self._page_out_run(run)
                run, run_bytes = [], 0
        if run:
            self._page_out_run(run)

    def _page_out_run(self, run: "list[QueuedMessage]") -> None:
        segment = self._paging.page_out(run)
        for entry in run:
            del self._entries[entry.position]
            self._segments[entry.position] = segment
            self._bytes -= _size(entry)

    def _page_in(self, segment: PagedSegment) -> None:
        """Bring a segment back into memory; messages without content are counted as lost and forgotten."""
        for position in segment.positions:
            del self._segments[position]
        for entry in self._paging.page_in(segment):
            self._entries[entry.position] = entry
            self._bytes += _size(entry)
        for position, size in zip(segment.positions, segment.body_sizes, strict=True):
            if position not in self._entries:
                del self._numbers[position]
                self.lost += 1
                self.lost_bytes += size


def _size(entry: "QueuedMessage") -> int:
    return len(entry.message.body) + MESSAGE_SIZE


def _position(entry: "QueuedMessage") -> int:
    return entry.position
