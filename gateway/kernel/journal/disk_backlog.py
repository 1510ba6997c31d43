"""The changes that wait for the disk, and the limits at which publishers and long work wait for it."""

from collections import deque
from collections.abc import Callable
from typing import Final

#: Bytes that may wait for the disk before busy publishers are blocked. Limits the memory that a publisher without
#: confirms can fill when it is faster than the disk; large enough for many commits in a row.
BACKLOG_LIMIT: Final = 32 * 1024 * 1024

#: Bytes that may wait for the disk before every publisher is blocked.
FAR_BEHIND_LIMIT: Final = 48 * 1024 * 1024

#: Bytes that may wait for the disk before long work pauses; far below the limit, so that it does not block publishers.
FILLING_LIMIT: Final = BACKLOG_LIMIT // 8

#: Slices of long work whose changes may wait for the disk while other changes fill the backlog.
MOST_SLICES: Final = 4


class DiskBacklog:
    """Owns the sizes of the steps that the store has and the disk has not. ``size`` is their sum in bytes.

    ``is_large`` means that busy publishers wait for the disk, ``is_very_large`` that all do. ``on_change`` is called
    when one of them changes.
    """

    def __init__(self) -> None:
        self._steps: deque[tuple[int, int]] = deque()
        self.size = 0
        self.is_large = False
        self.is_very_large = False
        self.on_change: Callable[[], None] = lambda: None

    @property
    def is_filling(self) -> bool:
        """Whether so much waits for the disk that long work should pause."""
        return self.size > FILLING_LIMIT

    def add(self, lsn: int, size: int) -> None:
        """Add the step at log position ``lsn``."""
        self._steps.append((lsn, size))
        self.size += size
        self._update()

    def remove_up_to(self, watermark: int) -> None:
        """Remove the steps that are durable."""
        steps = self._steps
        while steps and steps[0][0] <= watermark:
            self.size -= steps.popleft()[1]
        self._update()

    def _update(self) -> None:
        """Block and release publishers; each limit has hysteresis, so that they do not alternate with every write."""
        size = self.size
        is_large = size > (BACKLOG_LIMIT // 2 if self.is_large else BACKLOG_LIMIT)
        is_very_large = size > (BACKLOG_LIMIT if self.is_very_large else FAR_BEHIND_LIMIT)
        if is_large != self.is_large or is_very_large != self.is_very_large:
            self.is_large, self.is_very_large = is_large, is_very_large
            self.on_change()


class LongWork:
    """Decides when long work waits because much of the ``backlog`` waits for the disk.

    A few of its slices may be in the backlog at any time. Publishers that are faster than the disk keep the backlog
    filled for as long as they send, so that long work would never go on otherwise: a purge took 25 s, and the
    CONNACK of an MQTT client waits for the end of its last connection. ``_slices`` are the log positions of slices.
    """

    def __init__(self, backlog: DiskBacklog) -> None:
        self._backlog = backlog
        self._slices: deque[int] = deque()

    def has_to_wait(self, lsn: int, watermark: int) -> bool:
        """Return whether the next slice has to wait; otherwise its changes are recorded at the position ``lsn``."""
        slices = self._slices
        while slices and slices[0] <= watermark:
            slices.popleft()
        if not self._backlog.is_filling or (slices and slices[-1] == lsn):
            return False
        if len(slices) >= MOST_SLICES:
            return True
        slices.append(lsn)
        return False
