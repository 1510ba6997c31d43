"""How far consumers got in a stream, by the names they gave themselves."""

from collections import deque
from typing import TYPE_CHECKING, Final

from gateway.kernel.journal.changes import EVERYTHING, Put, Removed
from gateway.kernel.journal.records import StreamOffsetRecord

if TYPE_CHECKING:
    from gateway.kernel.clock import Timer
    from gateway.kernel.journal.journal import Journal

#: How long an offset that acknowledgements moved may wait to be put, in seconds. After a crash that much comes again.
_PUT_INTERVAL_S: Final = 1.0


class Tracking:
    """Owns the stored offsets of one stream: consumer name to the last message it dealt with.

    What consumers acknowledge is put at most once a second; what somebody stores outright is put at once. Of a stream
    that is gone nothing is kept any more.
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
        """Take in an offset that recovery found."""
        self.offsets[record.consumer] = record.offset

    def store(self, name: str, offset: int) -> None:
        """Keep an offset, whether it lies before or behind the one that is kept."""
        if self._is_erased:
            return
        self.offsets[name] = offset
        self._moved.discard(name)
        self._put(name)

    def move(self, name: str, offset: int) -> None:
        """Keep an offset, soon."""
        if self._is_erased:
            return
        self.offsets[name] = offset
        self._moved.add(name)
        if self._timer is None:
            self._timer = self._journal.clock.call_later(_PUT_INTERVAL_S, self.flush)

    def forget(self, name: str) -> bool:
        """Forget a consumer; return whether its offset was kept."""
        self._moved.discard(name)
        if self.offsets.pop(name, None) is None:
            return False
        self._journal.record(Removed(StreamOffsetRecord.kind, (self._vhost, self._queue, name)))
        return True

    def flush(self) -> None:
        """Put every offset that moved."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for name in sorted(self._moved):
            self._put(name)
        self._moved.clear()

    def erase(self) -> None:
        """Forget everybody: the stream is gone."""
        for name in list(self.offsets):
            self.forget(name)
        self.flush()
        self._is_erased = True

    def _put(self, name: str) -> None:
        self._journal.record(Put(StreamOffsetRecord(self._vhost, self._queue, name, self.offsets[name])))


class OffsetTracker:
    """Follows one consumer: the stored offset rises to the last message before which everything is dealt with.

    A message that was put back stays undealt with, and everything behind it: whoever comes next under the name sees it.
    """

    __slots__ = ("_dealt_with", "_end", "_handed_out", "_name", "_tracking")

    def __init__(self, tracking: Tracking, name: str) -> None:
        self._tracking = tracking
        self._name = name
        self._handed_out: deque[int] = deque()
        self._dealt_with: set[int] = set()
        self._end = EVERYTHING

    def handed_out(self, offset: int) -> None:
        """A message is with the consumer; offsets rise."""
        if offset < self._end:
            self._handed_out.append(offset)

    def dealt_with(self, offset: int) -> None:
        """The consumer is done with a message."""
        if offset >= self._end:
            return
        waiting = self._handed_out
        if waiting[0] != offset:
            self._dealt_with.add(offset)
            return
        last = waiting.popleft()
        while waiting and waiting[0] in self._dealt_with:
            last = waiting.popleft()
            self._dealt_with.remove(last)
        self._tracking.move(self._name, last)

    def put_back(self, offset: int) -> None:
        """The consumer gave a message back: it is followed no further than that."""
        self._end = min(self._end, offset)
