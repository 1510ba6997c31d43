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
