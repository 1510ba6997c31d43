"""An archive of one exchange or queue: a log of every message, exported to files.

A message is appended in the turn in which it is published, so the publisher's confirm covers it. A segment of the log
is sealed when it reaches its size or age, or when the day ends. A component outside the kernel then exports the segment
to a file, and the log truncates it.
"""

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from gateway.kernel.clock import Clock, Timer
    from gateway.kernel.journal.changes import StreamSegment
    from gateway.kernel.journal.records.topology import ArchiveRecord
    from gateway.kernel.messages.message import Message
    from gateway.kernel.streams.stream_log import StreamLog

EXCHANGE: Final = "exchange"
QUEUE: Final = "queue"
TRACE: Final = "trace"
"""The kinds of archive; the last is the trace of the virtual host, whose messages are events."""

_DAY_MS: Final = 86_400_000


@dataclass(frozen=True, slots=True)
class ArchiveRules:
    """Limits of archives: size in bytes and age at which a segment is sealed, and bytes that may wait for export."""

    segment_size: int = 64 * 1024 * 1024
    segment_age_s: int = 300
    most_waiting: int = 512 * 1024 * 1024


class ArchiveOwner(Protocol):
    """The archives of a virtual host, as one of them uses them.

    ``overflowing`` maps each full archive to the last message it took.
    """

    clock: "Clock"
    overflowing: "dict[Archive, Message]"

    @property
    def rules(self) -> ArchiveRules:
        """The limits of segments and of the bytes that wait for export."""
        ...

    @property
    def now_ms(self) -> int:
        """The time of the turn, in milliseconds."""
        ...

    def sealed(self, archive: "Archive", segment: "StreamSegment") -> None:
        """Report a complete segment."""
        ...

    def close(self, archive: "Archive") -> None:
        """Remove a retired archive whose segments are exported."""
        ...

    def fullness_changed(self, archive: "Archive") -> None:
        """Report that an archive is full, or no longer full."""
        ...


class Archive:
    """The log of one exchange or queue, or of the trace. Owns its log.

    ``waiting`` are the sealed segments that are not exported yet. ``is_full`` is set while they exceed the limit;
    publishers are then blocked. A retired archive accepts no messages and is closed once everything is exported.
    ``failure`` is why the last export failed, ``""`` after one that did not.
    """

    __slots__ = ("_owner", "_timer", "failure", "is_full", "is_retired", "log", "record", "waiting", "waiting_bytes")

    def __init__(self, record: "ArchiveRecord", owner: ArchiveOwner, log: "StreamLog") -> None:
        self.record = record
        self.log = log
        self.waiting: deque[StreamSegment] = deque()
        self.waiting_bytes = 0
        self.failure = ""
        self.is_full = False
        self.is_retired = False
        self._owner = owner
        self._timer: Timer | None = None
        log.on_sealed.append(self._sealed)
        log.on_run.append(lambda run: self._appended())

    def keep(self, message: "Message") -> None:
        """Append a message, in the turn in which it was published."""
        self.log.append(message)
        self._appended()
        if self.is_full:
            self._owner.overflowing[self] = message

    def _appended(self) -> None:
        if self._timer is None:
            self.schedule_seal()

    @property
    def table(self) -> str:
        """The typed table of the next message, ``""`` for none."""
        return self.record.table

    def use_table(self, table: str) -> None:
        """File the messages from now on in another typed table. A segment is of one table, so this one is sealed."""
        self.log.seal()
        self.record = self.record.with_table(table, self.log.end, self.log.first)

    @property
    def lag_ms(self) -> int:
        """The age of the oldest message that is not exported yet, in milliseconds."""
        oldest = self.log.oldest
        return max(0, self._owner.now_ms - oldest.first_ms) if len(self.log) else 0

    def filed(self, end: int) -> None:
        """Truncate the log below ``end``: everything before that offset is in files."""
        self.failure = ""
        while self.waiting and self.waiting[0].end <= end:
            self.waiting.popleft()
        self.log.truncate(end)
        self._update_fullness()
        if self.is_retired and not len(self.log):
            self._owner.close(self)

    # Sealing

    def resume(self) -> None:
        """Resume after recovery, where an earlier run of the node stopped; called once."""
        self.waiting.extend(segment for segment in self.log.segments if segment.is_sealed)
        self._update_fullness()
        self.schedule_seal()

    def schedule_seal(self) -> None:
        """Schedule the sealing of the active segment."""
        self.cancel()
        active, now_ms = self.log.segments[-1], self._owner.now_ms
        if active.first < active.end:
            delay_ms = self._due_ms(active) - max(now_ms, active.first_ms)  # later than now: the clock was set back
            self._timer = self._owner.clock.call_later(max(0, delay_ms) / 1000, self._aged)

    def cancel(self) -> None:
        """Cancel the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _due_ms(self, active: "StreamSegment") -> int:
        """Return the time at which a segment reaches its maximum age or its day ends."""
        next_day_ms = (active.first_ms // _DAY_MS + 1) * _DAY_MS
        return min(active.first_ms + self._owner.rules.segment_age_s * 1000, next_day_ms)

    def _aged(self) -> None:
        """Seal the active segment if it is due; it may have been started after the timer was set."""
        self._timer = None
        active, now_ms = self.log.segments[-1], self._owner.now_ms
        if active.first < active.end and (self._due_ms(active) <= now_ms or active.first_ms > now_ms):
            self.log.seal()
        self.schedule_seal()

    def _sealed(self, segment: "StreamSegment") -> None:
        self.waiting.append(segment)
        self._update_fullness()
        self._owner.sealed(self, segment)

    def _update_fullness(self) -> None:
        """Update the amount that waits. A full archive accepts publishers again at half of the limit."""
        self.waiting_bytes = sum(segment.size_bytes for segment in self.waiting)
        most = self._owner.rules.most_waiting
        is_full = self.waiting_bytes > (most // 2 if self.is_full else most)
        if is_full != self.is_full:
            self.is_full = is_full
            self._owner.fullness_changed(self)
