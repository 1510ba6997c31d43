"""Retention: a stream deletes its oldest segments when it exceeds its size or they exceed their age.

Only whole segments are deleted, never the active one. So that the age applies to a quiet stream too, the active segment
is sealed once its first message is too old: a message stays for at least the maximum age and at most twice as long.
"""

from typing import TYPE_CHECKING, Final

from gateway.kernel.clock import Clock, Timer
from gateway.kernel.features.context import FeatureContext
from gateway.kernel.queueing.feature import QueueFeature
from gateway.kernel.settings.max_age import age_ms
from gateway.kernel.streams.stream import Stream

if TYPE_CHECKING:
    from gateway.kernel.journal.changes import StreamSegment

#: The maximum delay of a timer; longer ages take several timers.
_LONGEST_S: Final = 86_400.0

#: The minimum delay of a timer: a segment that was sealed for its age is deleted once that is durable.
_SHORTEST_S: Final = 1.0


def retention(queue: Stream, context: FeatureContext) -> "Retention | None":
    """Return the feature if the stream has a limit."""
    most_bytes = queue.settings.number("max-length-bytes")
    longest_ms = age_ms(queue.settings.value("max-age"))
    if most_bytes is None and longest_ms is None:
        return None
    return Retention(queue, most_bytes, longest_ms, context.clock)


class Retention(QueueFeature):
    """Keeps a stream below ``most_bytes``, and its messages no longer than ``longest_ms``; ``None`` for no limit."""

    def __init__(self, stream: Stream, most_bytes: int | None, longest_ms: int | None, clock: Clock) -> None:
        self._log = stream.log
        self._most_bytes = most_bytes
        self._longest_ms = longest_ms
        self._clock = clock
        self._timer: Timer | None = None

    def attached(self) -> None:
        """Check after recovery, with every sealed segment, and when a segment may be too old."""
        self._log.on_sealed.append(self._sealed)
        self._timer = self._clock.call_later(0, self._check)

    def detached(self) -> None:
        """Cancel the timer."""
        self._log.on_sealed.remove(self._sealed)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _sealed(self, segment: "StreamSegment") -> None:
        self._apply()

    def _apply(self) -> None:
        """Delete segments above the size, then those that are too old."""
        log = self._log
        too_many = log.size_bytes - self._most_bytes if self._most_bytes is not None else 0
        oldest_ms = self._clock.wall_ms() - self._longest_ms if self._longest_ms is not None else 0
        first = log.first
        for segment in log.segments[:-1]:
            if too_many <= 0 and segment.last_ms > oldest_ms:
                break
            first = segment.end
            too_many -= segment.size_bytes
        log.truncate(first)

    def _check(self) -> None:
        self._timer = None
        if self._longest_ms is not None:
            self._seal_if_too_old(self._longest_ms)
        self._apply()
        if self._longest_ms is not None:
            self._timer = self._clock.call_later(self._due_s(self._longest_ms), self._check)

    def _seal_if_too_old(self, longest_ms: int) -> None:
        active = self._log.segments[-1]
        if active.first_ms and active.first_ms <= self._clock.wall_ms() - longest_ms:
            self._log.seal()

    def _due_s(self, longest_ms: int) -> float:
        """Return when the next segment is too old, or the active one must be sealed for its age."""
        now_ms = self._clock.wall_ms()
        oldest = self._log.oldest
        due_ms = (oldest.last_ms if oldest.is_sealed else oldest.first_ms) or now_ms
        return min(max((due_ms + longest_ms - now_ms) / 1000, _SHORTEST_S), _LONGEST_S)
