"""The time that a call takes, as far as it does not depend on how busy the machine is.

A limit of wall time fails on a busy machine, and one of CPU time permits a call to block. So the time in which the
thread was ready to run but had no processor is not counted; and what is too slow once, such as during a collection of
garbage, is called again.
"""

from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Final

#: The times of the calling thread in nanoseconds: on a processor, waiting for one, and the number of time slices.
_SCHEDULE: Final = Path("/proc/thread-self/schedstat")

#: Calls of which the fastest counts, after one that was too slow.
_FURTHER_CALLS: Final = 5


def processor_wait_s() -> float:
    """Return for how long the calling thread was ready to run without a processor; 0 where the system does not tell."""
    try:
        return int(_SCHEDULE.read_bytes().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0


class CallTimer:
    """Measures from its creation on, in the thread that creates it."""

    def __init__(
        self, now_s: Callable[[], float] = perf_counter, waited_s: Callable[[], float] = processor_wait_s
    ) -> None:
        self._now_s = now_s
        self._waited_s = waited_s
        self._earlier_wait_s = waited_s()
        self._starts_s = now_s()

    @property
    def seconds(self) -> float:
        """The time since the creation in which the thread worked, or waited for anything but a processor."""
        passed_s = self._now_s() - self._starts_s
        return passed_s - min(passed_s, self._waited_s() - self._earlier_wait_s)


def is_slower(call: Callable[[], object], seconds: float, most_s: float) -> bool:
    """Return whether a call that took ``seconds`` takes more than ``most_s`` whenever it is made."""
    if seconds <= most_s:
        return False
    for _ in range(_FURTHER_CALLS):
        timer = CallTimer()
        call()
        if timer.seconds <= most_s:
            return False
    return True
