"""The time that the event loop's thread waits for a processor on a busy machine."""

import threading
from pathlib import Path
from typing import Final

#: The path of a thread's times, in nanoseconds: on a processor, waiting for one, and the number of time slices.
_SCHEDULE: Final = "/proc/self/task/{}/schedstat"


class ProcessorWaits:
    """Tells for how long a thread was ready to run without a processor, by default the thread that creates it.

    ``sample`` is called about once a second. Systems without such a file count as if a processor were always free.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path or Path(_SCHEDULE.format(threading.get_native_id()))
        self._earlier_s = self._latest_s = self._total_s()

    def sample(self) -> None:
        """Begin a new interval."""
        self._earlier_s, self._latest_s = self._latest_s, self._total_s()

    def recent_s(self) -> float:
        """Return the seconds of waiting in this interval and the one before it."""
        return self._total_s() - self._earlier_s

    def _total_s(self) -> float:
        try:
            return int(self._path.read_bytes().split()[1]) / 1e9
        except (OSError, IndexError, ValueError):
            return 0.0
