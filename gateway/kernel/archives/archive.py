"""What is kept for good of one exchange or queue: a log that nobody consumes, on its way into files.

A kept message goes into the log in the very turn in which it was published: the publisher's confirm covers it. A
segment of the log is sealed when it is large or old enough or the day ends, somebody makes a file of it, and then the
log lets go of it. Who does that, and how, the kernel does not know.
"""

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from gateway.kernel.archives.archives import Archives
    from gateway.kernel.clock import Timer
    from gateway.kernel.journal.changes import StreamSegment
    from gateway.kernel.journal.records import ArchiveRecord
    from gateway.kernel.messages.message import Message
    from gateway.kernel.streams.stream_log import StreamLog

EXCHANGE: Final = "exchange"
QUEUE: Final = "queue"
TRACE: Final = "trace"
"""What an archive can be of; the last is the trace of the virtual host, whose messages are events."""

_DAY_MS: Final = 86_400_000


@dataclass(frozen=True, slots=True)
class ArchiveRules:
    """How archives are cut: when a segment is sealed, by size in bytes and by age, and how much may wait, in bytes."""

    segment_size: int = 64 * 1024 * 1024
    segment_age_s: int = 300
    most_waiting: int = 512 * 1024 * 1024


class Archive:
    """What is kept of one exchange or queue, or the trace. Owns its log.

    The segments in ``waiting`` are sealed for good and in no file yet. It ``is_full`` while they are too many; whoever
    publishes then is held back. One that ``is_retired`` takes nothing more and goes once all of it is in files.
    """

    __slots__ = ("_archives", "_timer", "is_full", "is_retired", "log", "record", "waiting", "waiting_bytes")

    def __init__(self, record: "ArchiveRecord", archives: "Archives", log: "StreamLog") -> None:
        self.record = record
        self.log = log
        self.waiting: deque[StreamSegment] = deque()
        self.waiting_bytes = 0
        self.is_full = False
        self.is_retired = False
        self._archives = archives
        self._timer: Timer | None = None
        log.on_sealed.append(self._sealed)

    def keep(self, message: "Message") -> None:
        """Keep a message, with the turn it was published in."""
        self.log.append(message)
        if self._timer is None:
            self.mind_age()
        if self.is_full:
            self._archives.overflowing[self] = message

    @property
    def lag_ms(self) -> int:
        """For how long the oldest message has waited that is in no file, in milliseconds."""
        oldest = self.log.oldest
        return max(0, self._archives.now_ms - oldest.first_ms) if len(self.log) else 0

    def filed(self, end: int) -> None:
        """Everything below this offset is in files: let go of it."""
        while self.waiting and self.waiting[0].end <= end:
            self.waiting.popleft()
        self.log.truncate(end)
        self._weigh()
        if self.is_retired and not len(self.log):
            self._archives.close(self)

    # When a segment is complete

    def go_on(self) -> None:
        """Go on where an earlier run of the node ended; called once, after recovery."""
        self.waiting.extend(segment for segment in self.log.segments if segment.is_sealed)
        self._weigh()
        self.mind_age()

    def mind_age(self) -> None:
        """Make sure that what is being written is sealed in time."""
        self.cancel()
        active = self.log.segments[-1]
        if active.first < active.end:
            delay_ms = max(0, self._due_ms(active) - self._archives.now_ms)
            self._timer = self._archives.clock.call_later(delay_ms / 1000, self._aged)

    def cancel(self) -> None:
        """Do nothing any more of oneself."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _due_ms(self, active: "StreamSegment") -> int:
        """Return when a segment is old enough, or its day ends."""
        next_day_ms = (active.first_ms // _DAY_MS + 1) * _DAY_MS
        return min(active.first_ms + self._archives.rules.segment_age_s * 1000, next_day_ms)

    def _aged(self) -> None:
        """Seal what is due; a segment that was begun since the timer was set is younger than that."""
        self._timer = None
        active = self.log.segments[-1]
        if active.first < active.end and self._due_ms(active) <= self._archives.now_ms:
            self.log.seal()
        self.mind_age()

    def _sealed(self, segment: "StreamSegment") -> None:
        self.waiting.append(segment)
        self._weigh()
        self._archives.sealed(self, segment)

    def _weigh(self) -> None:
        """Find out how much waits; half of what may has to be gone before publishers go on."""
        self.waiting_bytes = sum(segment.size_bytes for segment in self.waiting)
        most = self._archives.rules.most_waiting
        is_full = self.waiting_bytes > (most // 2 if self.is_full else most)
        if is_full != self.is_full:
            self.is_full = is_full
            self._archives.weighed(self)
