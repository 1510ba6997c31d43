"""Where a broker and the generator run: side by side, or on one core in turns.

Where each message waits for the one before, each pays for waking whoever has to act on it next. On another core of a
virtual machine that is 10 to 30 µs, booked on whoever wakes or is woken: several times what a broker does for a small
message, and two or three times more in one run than in the next, as the scheduler likes. On one core it is a switch.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def one_core_shared(pid: int) -> Iterator[None]:
    """Keep a broker, all its threads, and this process on one core while the block lasts."""
    cores = os.sched_getaffinity(0)
    _confine(pid, {min(cores)})
    try:
        yield
    finally:
        _confine(pid, cores)


def _confine(pid: int, cores: set[int]) -> None:
    for thread in (0, *map(int, os.listdir(f"/proc/{pid}/task"))):
        os.sched_setaffinity(thread, cores)
