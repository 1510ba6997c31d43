"""The paged part of a long queue: its segments, oldest first, with access to their middle."""

from bisect import bisect_left, bisect_right
from collections import deque
from itertools import accumulate

from gateway.kernel.messages.paged_segment import PagedSegment


class PagedSegments(deque[PagedSegment]):
    """Segments in the order of their positions, none of them empty."""

    @property
    def newest(self) -> int:
        """The last position; there must be a message."""
        return self[-1].positions[-1]

    def run_after(self, position: int, most: int, most_bytes: int) -> PagedSegment:
        """Return a copy of the messages after a position: at least one, at most ``most`` and ``most_bytes`` of bodies.

        All of them are of one segment. :raises IndexError: if nothing follows.
        """
        segment = self[bisect_right(self, position, key=_last_position)]
        first = bisect_right(segment.positions, position)
        sizes = accumulate(segment.body_sizes[first : first + most])
        return segment.part(first, first + max(1, sum(size <= most_bytes for size in sizes)))

    def pop_first(self, most: int) -> PagedSegment:
        """Remove and return at most ``most`` messages of the first segment; there must be one."""
        segment = self[0]
        if len(segment) <= most:
            return self.popleft()
        first = segment.part(0, most)
        segment.remove_first(most)
        return first

    def take_one(self, position: int) -> PagedSegment | None:
        """Remove the message at a position and return it as a segment; ``None`` if it is not here."""
        at = bisect_left(self, position, key=_last_position)
        if at == len(self):
            return None
        segment = self[at]
        row = bisect_left(segment.positions, position)
        if segment.positions[row] != position:
            return None
        taken = segment.part(row, row + 1)
        segment.remove(row)
        if not len(segment):
            del self[at]
        return taken

    def take(self, positions: set[int]) -> list[PagedSegment]:
        """Remove the messages at these positions; return them as one segment per segment they came from."""
        wanted = sorted(positions)
        taken = []
        for segment in self:
            first = bisect_left(wanted, segment.positions[0])
            if first < len(wanted) and wanted[first] <= segment.positions[-1]:
                taken.append(segment.split(positions))
        left = [segment for segment in self if len(segment)]
        self.clear()
        self.extend(left)
        return [segment for segment in taken if len(segment)]


def _last_position(segment: PagedSegment) -> int:
    return segment.positions[-1]
