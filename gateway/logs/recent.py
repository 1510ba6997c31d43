"""The most recent log lines, kept in memory for operators without access to the machine."""

from collections import deque
from collections.abc import Sequence
from itertools import islice
from typing import Final

#: Lines kept: at most some 2 MB, as lines are bounded.
MOST_LINES: Final = 1000


class RecentLines:
    """Keeps the latest lines; each has a number, the first 1. Lines may come from any thread."""

    def __init__(self, most: int = MOST_LINES) -> None:
        self._lines: deque[tuple[int, str]] = deque(maxlen=most)
        self._last = 0

    def add(self, line: str) -> None:
        """Keep a line; the handler's lock is held."""
        self._last += 1
        self._lines.append((self._last, line))

    def after(self, number: int) -> tuple[int, Sequence[str]]:
        """Return the kept lines after a number, and the number of the last one; 0 is before the first."""
        lines = self._lines.copy()
        if not lines:
            return number, ()
        skipped = max(0, number - lines[0][0] + 1)
        return lines[-1][0], [line for _, line in islice(lines, skipped, None)]


#: The lines of this process's log.
RECENT: Final = RecentLines()
