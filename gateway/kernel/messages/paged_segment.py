"""Paged messages: a few numbers for each, in columns, oldest first."""

from array import array
from collections.abc import Sequence
from typing import Final

#: The flags of a message: it is in the store as a durable message; it may have been delivered before.
DURABLE: Final = 1
REDELIVERED: Final = 2


class PagedSegment:
    """Waiting messages without their contents: parallel arrays, oldest first."""

    __slots__ = ("body_sizes", "content_ids", "delivery_counts", "enqueued_at_ms", "flags", "positions")

    def __init__(self) -> None:
        self.positions = array("Q")
        self.content_ids = array("Q")
        self.enqueued_at_ms = array("Q")
        self.delivery_counts = array("I")
        self.body_sizes = array("I")
        self.flags = array("B")

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def columns(self) -> "tuple[array[int], ...]":
        """The arrays, in the order ``add`` takes their numbers."""
        return (
            self.positions,
            self.content_ids,
            self.enqueued_at_ms,
            self.delivery_counts,
            self.body_sizes,
            self.flags,
        )

    def add(
        self, position: int, content_id: int, enqueued_at_ms: int, delivery_count: int, body_size: int, flags: int
    ) -> None:
        """Append one message; ``flags`` is made of ``DURABLE`` and ``REDELIVERED``."""
        self.positions.append(position)
        self.content_ids.append(content_id)
        self.enqueued_at_ms.append(enqueued_at_ms)
        self.delivery_counts.append(delivery_count)
        self.body_sizes.append(body_size)
        self.flags.append(flags)

    def extend(self, columns: "tuple[Sequence[int], ...]") -> None:
        """Append several messages: as many numbers for each of ``columns``."""
        for column, numbers in zip(self.columns, columns, strict=True):
            column.extend(numbers)

    def replace(
        self,
        row: int,
        position: int,
        content_id: int,
        enqueued_at_ms: int,
        delivery_count: int,
        body_size: int,
        flags: int,
    ) -> None:
        """Write another message over the one in this row."""
        self.positions[row] = position
        self.content_ids[row] = content_id
        self.enqueued_at_ms[row] = enqueued_at_ms
        self.delivery_counts[row] = delivery_count
        self.body_sizes[row] = body_size
        self.flags[row] = flags

    def row(self, row: int) -> tuple[int, int, int, int, int, int]:
        """Return the numbers of one message, in the order ``add`` takes them."""
        return (
            self.positions[row],
            self.content_ids[row],
            self.enqueued_at_ms[row],
            self.delivery_counts[row],
            self.body_sizes[row],
            self.flags[row],
        )

    def part(self, first: int, last: int) -> "PagedSegment":
        """Return a copy of the messages from row ``first`` to ``last`` (exclusive)."""
        part = PagedSegment()
        for copy, column in zip(part.columns, self.columns, strict=True):
            copy.extend(column[first:last])
        return part

    def remove(self, row: int) -> None:
        """Remove one message."""
        for column in self.columns:
            del column[row]

    def remove_first(self, count: int) -> None:
        """Remove the ``count`` oldest messages."""
        for column in self.columns:
            del column[:count]

    def split(self, positions: set[int]) -> "PagedSegment":
        """Remove the messages at these positions; return them as another segment."""
        taken, kept = PagedSegment(), PagedSegment()
        for row, position in enumerate(self.positions):
            (taken if position in positions else kept).add(*self.row(row))
        self.positions, self.content_ids = kept.positions, kept.content_ids
        self.enqueued_at_ms, self.delivery_counts = kept.enqueued_at_ms, kept.delivery_counts
        self.body_sizes, self.flags = kept.body_sizes, kept.flags
        return taken
