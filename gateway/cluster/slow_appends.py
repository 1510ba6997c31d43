"""Whether a log is slow for as long as one of its copies leads it, as with a disk that fails."""

from typing import Final

#: An append that takes so long is slow: a majority of healthy disks needs a few milliseconds.
SLOW_S: Final = 0.04

#: Appends are slow for so long, and so many in a row, before another leader is asked for.
PATIENCE_S: Final = 4.0
LEAST_APPENDS: Final = 5

#: The pause after another leader was asked for. It doubles each time, since all disks, or the way to them, may be slow.
FIRST_PAUSE_S: Final = 30.0
LONGEST_PAUSE_S: Final = 3600.0


class SlowAppends:
    """Decides when the log needs another leader: not one of many appends in a row was quick.

    A busy machine has quick appends among slow ones. ``moves`` counts how often another leader was asked for.
    """

    def __init__(self) -> None:
        self.moves = 0
        self._since_s = 0.0
        self._count = 0
        self._moved_s = float("-inf")
        self._pause_s = 0.0

    def note(self, answered_s: float, took_s: float) -> bool:
        """Note an append; return whether another leader is needed now."""
        if took_s < SLOW_S:
            self._count = 0
            if answered_s - self._moved_s >= 2 * self._pause_s:  # the last move has helped
                self._pause_s = 0.0
            return False
        if not self._count:
            self._since_s = answered_s - took_s
        self._count += 1
        is_slow = self._count >= LEAST_APPENDS and answered_s - self._since_s >= PATIENCE_S
        if not is_slow or answered_s - self._moved_s < self._pause_s:
            return False
        self.moves += 1
        self._moved_s = answered_s
        self._pause_s = min(max(FIRST_PAUSE_S, 2 * self._pause_s), LONGEST_PAUSE_S)
        self._count = 0
        return True
