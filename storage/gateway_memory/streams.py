"""One stream of a memory store: its entries and its segments."""

from collections.abc import Iterator

from gateway.kernel.journal.changes import Appended, Sealed, StreamSegment, Truncated
from gateway.kernel.journal.stored_changes import appended
from gateway.kernel.messages.chunks import ENTRY_SIZE, Entry, encode_chunk


class StreamImage:
    """The messages from ``first`` on, oldest first."""

    def __init__(self, stream_id: int) -> None:
        self._id = stream_id
        self._first = 0
        self._entries: list[Entry] = []
        self._sealed: list[StreamSegment] = []

    @property
    def end(self) -> int:
        """The offset after the last message."""
        return self._first + len(self._entries)

    def append(self, offset: int, entry: Entry) -> None:
        """Append a message; do nothing if it exists already."""
        if offset == self.end:
            self._entries.append(entry)

    def seal(self, segment: StreamSegment) -> None:
        """Record a sealed segment."""
        if segment.first >= self._first and segment not in self._sealed:
            self._sealed.append(segment)

    def truncate(self, first: int) -> None:
        """Remove everything below an offset."""
        if first > self._first:
            del self._entries[: first - self._first]
            self._sealed = [sealed for sealed in self._sealed if sealed.first >= first]
            self._first = first

    def chunks(self, offset: int, most_bytes: int) -> bytes | None:
        """Return messages from an offset on as one chunk; ``None`` if there is no such message."""
        if not self._first <= offset < self.end:
            return None
        taken: list[Entry] = []
        for place in range(offset - self._first, len(self._entries)):
            entry = self._entries[place]
            most_bytes -= _size(entry)
            if taken and most_bytes < 0:
                break
            taken.append(entry)
        return encode_chunk(offset, taken)

    def segments(self) -> Iterator[StreamSegment]:
        """Yield the segments, the active one last."""
        yield from self._sealed
        first = self._sealed[-1].end if self._sealed else self._first
        active = self._entries[first - self._first :]
        moments = (active[0][0], active[-1][0]) if active else (0, 0)
        yield StreamSegment(self._id, first, self.end, sum(map(_size, active)), *moments, is_sealed=False)

    def changes(self, end: int) -> Iterator[Truncated | Appended | Sealed]:
        """Yield the changes that make this stream up to an offset."""
        yield Truncated(self._id, self._first)
        sealed = {segment.end: segment for segment in self._sealed}
        for offset in range(self._first, end):
            place = offset - self._first
            if 0 <= place < len(self._entries):
                yield appended(self._id, offset, *self._entries[place])
            if offset + 1 in sealed:
                yield Sealed(sealed[offset + 1])

    def copied(self) -> "StreamImage":
        """Return an independent copy."""
        copy = StreamImage(self._id)
        copy._first, copy._entries, copy._sealed = self._first, list(self._entries), list(self._sealed)
        return copy


def _size(entry: Entry) -> int:
    return ENTRY_SIZE + len(entry[1]) + len(entry[2])
