"""The record of the depths of queues: what differs from the sample before is written, at each interval.

The statistics read the counts of queues that had traffic every few seconds. This record takes the depths from there, so
a queue without traffic costs nothing. Deletions are events.
"""

from typing import Final, Protocol

from twisted.python.failure import Failure

from gateway.kernel.clock import Clock
from gateway.kernel.events import Event
from gateway.logs import StructuredLog
from gateway.management.depths.depth_files import DepthFiles
from gateway.management.depths.depth_sample import Depth, DepthSample, QueueKey

_log: Final = StructuredLog("depths")

_DAY_MS: Final = 86_400_000

#: Statistics are a little early or late: a sample that is due within this time is due, in seconds.
_NEARLY_S: Final = 2.5


class CountedQueue(Protocol):
    """A queue, or another object with its counts."""

    id: int
    name: str
    vhost_name: str

    def __len__(self) -> int:
        """Return the number of messages that are ready for consumers."""
        ...

    @property
    def unsettled(self) -> int:
        """The number of messages with consumers."""
        ...


class DepthRecord:
    """Writes the depths of queues to ``files`` each ``interval_s``, in the turn in which a sample ends.

    While the disk is slow, samples are left out; the changes wait, one for each queue, for the next one.
    """

    def __init__(self, files: DepthFiles, clock: Clock, interval_s: int) -> None:
        self._files = files
        self._clock = clock
        self._interval_s = interval_s
        self._depths: dict[QueueKey, Depth] = {}
        self._changed: dict[QueueKey, Depth | None] = {}
        self._begun_ms = self._ended_ms = 0
        self._file_day = -1
        self._due_s = 0.0
        self._is_writing = False
        self._has_failed = False

    def begin(self) -> None:
        """Begin a sample. If the clock was set back, it is the first of a new file: times in a file never decrease."""
        self._begun_ms = self._clock.wall_ms()
        if self._begun_ms < self._ended_ms:
            self._file_day = -1

    def saw(self, queue: CountedQueue) -> None:
        """Take the depth of a queue that may have changed since the sample before."""
        key = queue.vhost_name, queue.name
        depth = Depth(queue.id, len(queue), queue.unsettled)
        if self._depths.get(key) != depth:
            self._depths[key] = self._changed[key] = depth

    def __call__(self, event: Event) -> None:
        """Take the deletion of a queue; other events are ignored."""
        if event.name == "queue.deleted":
            key = event.vhost, event.subject
            if self._depths.pop(key, None) is not None:
                self._changed[key] = None

    def end(self) -> None:
        """End a sample of all queues, and write it if it is due."""
        now_s = self._clock.monotonic_s()
        if self._is_writing or now_s < self._due_s:
            return
        self._due_s = now_s + self._interval_s - _NEARLY_S
        self._ended_ms = max(self._clock.wall_ms(), self._begun_ms)
        day = self._ended_ms // _DAY_MS
        starts_file = day != self._file_day or self._files.is_full
        depths = self._depths.copy() if starts_file else self._changed
        self._file_day, self._changed, self._is_writing = day, {}, True
        sample = DepthSample(self._begun_ms, self._ended_ms, depths)
        self._files.write(sample, starts_file=starts_file).addCallbacks(self._written, self._failed)

    def _written(self, _: None) -> None:
        self._is_writing = self._has_failed = False

    def _failed(self, failure: Failure) -> None:
        """Begin a new file with the next sample: this one is lost, and with it the changes."""
        self._is_writing = False
        self._file_day = -1
        if not self._has_failed:
            _log.warning("depths.failed", error=failure.getErrorMessage())
        self._has_failed = True
