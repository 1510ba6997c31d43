"""Conversion of stream chunks between two offsets to batches of rows.

Only lengths are decoded here. A row is a body and the number of its *envelope*, the part before the body, so that
each distinct envelope is decoded only once.
"""

from array import array
from collections.abc import Iterable, Iterator
from typing import Final

from gateway.columnar.encoding.pieces import DAY_MS
from gateway.kernel.errors import StorageError
from gateway.kernel.messages.chunks import entries
from gateway.kernel.messages.contents import body_at

#: Rows in one batch. A reader that wants a single row of a sealed file gets this many.
MOST_ROWS: Final = 8192

#: A batch ends at this many bytes of bodies, so that large messages make small batches.
MOST_BYTES: Final = 4 * 1024 * 1024

#: The end of the year 9999; no message is later, so a larger number is damage.
_LATEST_MS: Final = 253_402_300_799_999

#: The day of rows before the first one: it begins a batch, although a clock that was never set says 1970.
_NO_DAY: Final = -1


class Rows:
    """Consecutive rows of one day. ``codes`` holds the index of each row's envelope in ``envelopes``.

    ``timestamps`` are in µs since the epoch.
    """

    __slots__ = ("bodies", "codes", "day", "envelopes", "first", "room", "timestamps")

    def __init__(self, first: int, day: int) -> None:
        self.first = first
        self.day = day
        self.room = MOST_BYTES
        self.timestamps = array("q")
        self.codes = array("i")
        self.envelopes: dict[bytes, int] = {}
        self.bodies: list[bytes] = []

    def __len__(self) -> int:
        return len(self.bodies)

    @property
    def offsets(self) -> "array[int]":
        """The offset of each row."""
        return array("q", range(self.first, self.first + len(self.bodies)))

    def add(self, timestamp_ms: int, content: bytes) -> None:
        """Add a row. :raises StorageError: if its time or its content is damaged."""
        if timestamp_ms > _LATEST_MS:
            raise StorageError(f"a message of a stream has the time {timestamp_ms} ms")
        at = body_at(content)
        envelope, body = content[:at], content[at:]
        code = self.envelopes.get(envelope)
        if code is None:
            code = self.envelopes[envelope] = len(self.envelopes)
        self.codes.append(code)
        self.timestamps.append(timestamp_ms * 1000)
        self.bodies.append(body)
        self.room -= len(body)


def rows_between(chunks: Iterable[bytes], first: int, end: int, position: int = 0) -> Iterator[Rows]:
    """Yield the rows from ``first`` to before ``end`` in these chunks of a stream, in batches of consecutive offsets.

    :param position: where the first chunk to read begins in each of the data.

    :raises StorageError: if a chunk or a content is damaged, or a newer gateway wrote it.
    """
    rows = Rows(first, _NO_DAY)
    for data in chunks:
        for offset, timestamp_ms, _, content in entries(data, first, position):
            if offset >= end:
                break
            count = len(rows.bodies)
            is_next = timestamp_ms // DAY_MS == rows.day and offset == rows.first + count
            if not is_next or count >= MOST_ROWS or rows.room <= 0:
                if count:
                    yield rows
                rows = Rows(offset, timestamp_ms // DAY_MS)
            rows.add(timestamp_ms, content)
    if rows.bodies:
        yield rows
