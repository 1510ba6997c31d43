"""Stored offsets of named stream consumers."""

from collections import deque
from typing import TYPE_CHECKING, Final

from gateway.kernel.journal.changes import EVERYTHING, Put, Removed
from gateway.kernel.journal.records.progress import StreamOffsetRecord

if TYPE_CHECKING:
    from gateway.kernel.clock import Timer
    from gateway.kernel.journal.journal import Journal

#: The longest time before an acknowledged offset is stored, in seconds; after a crash these messages are sent again.
_PUT_INTERVAL_S: Final = 1.0


class StoredOffsets:
    """Owns the stored offsets of one stream: consumer name to the last message that it processed.

    Offsets moved by acknowledgements are stored at most once a second; explicit ones are stored at once. After the
    stream is deleted nothing is stored.
    """

    __slots__ = ("_is_erased", "_journal", "_moved", "_queue", "_timer", "_vhost", "offsets")

    def __init__(self, vhost: str, queue: str, journal: "Journal") -> None:
        self._vhost = vhost
        self._queue = queue
        self._journal = journal
        self._moved: set[str] = set()
        self._timer: Timer | None = None
        self._is_erased = False
        self.offsets: dict[str, int] = {}

    def restore(self, record: StreamOffsetRecord) -> None:
        """Add an offset found by recovery."""
        self.offsets[record.consumer] = record.offset

    def store(self, name: str, offset: int) -> None:
        """Store an offset at once, even if it is lower than the stored one."""
        if self._is_erased:
            return
        self.offsets[name] = offset
        self._moved.discard(name)
        self._put(name)

    def move(self, name: str, offset: int) -> None:
        """Set an offset and store it soon."""
        if self._is_erased:
            return
        self.offsets[name] = offset
        self._moved.add(name)
        if self._timer is None:
            self._timer = self._journal.clock.call_later(_PUT_INTERVAL_S, self.flush)

    def forget(self, name: str) -> bool:
        """Delete a consumer's offset; return whether there was one."""
        self._moved.discard(name)
        if self.offsets.pop(name, None) is None:
            return False
        self._journal.record(Removed(StreamOffsetRecord.kind, (self._vhost, self._queue, name)))
        return True

    def flush(self) -> None:
        """Store all moved offsets."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for name in sorted(self._moved):
            self._put(name)
        self._moved.clear()

    def erase(self) -> None:
        """Delete all offsets: the stream is deleted."""
        for name in list(self.offsets):
            self.forget(name)
        self.flush()
        self._is_erased = True

    def _put(self, name: str) -> None:
        self._journal.record(Put(StreamOffsetRecord(self._vhost, self._queue, name, self.offsets[name])))


class OffsetTracker:
    """Tracks one consumer: the stored offset is the last message up to which all are processed.

    It does not pass a message that the consumer returned: the next consumer of the same name gets that message and all
    after it.
    """

    __slots__ = ("_delivered", "_end", "_name", "_processed", "_tracking")

    def __init__(self, tracking: StoredOffsets, name: str) -> None:
        self._tracking = tracking
        self._name = name
        self._delivered: deque[int] = deque()
        self._processed: set[int] = set()
        self._end = EVERYTHING

    def delivered(self, offset: int) -> None:
        """Register a delivered message; offsets rise."""
        if offset < self._end:
            self._delivered.append(offset)

    def processed(self, offset: int) -> None:
        """Register a processed message."""
        if offset >= self._end:
            return
        waiting = self._delivered
        if waiting[0] != offset:
            self._processed.add(offset)
            return
        last = waiting.popleft()
        while waiting and waiting[0] in self._processed:
            last = waiting.popleft()
            self._processed.remove(last)
        self._tracking.move(self._name, last)

    def end(self) -> None:
        """Ignore what is processed from now on: another consumer of the name goes on from the stored offset."""
        self._end = 0

    def returned(self, offset: int) -> None:
        """Register a returned message: the stored offset stays below it."""
        self._end = min(self._end, offset)
