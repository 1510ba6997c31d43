"""Placement of broker and generator: on separate cores, or in turns on one core.

If each message waits for the one before, each pays for waking the next process. On another core of a virtual
machine that costs 10 to 30 µs, charged to either side: several times the broker's work for a small message, and it
varies by a factor of two or three between runs. On one core it is a context switch.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def one_core_shared(pid: int) -> Iterator[None]:
    """Restrict a broker with all its threads and this process to one core during the block."""
    cores = os.sched_getaffinity(0)
    _confine(pid, {min(cores)})
    try:
        yield
    finally:
        _confine(pid, cores)


def _confine(pid: int, cores: set[int]) -> None:
    for thread in (0, *map(int, os.listdir(f"/proc/{pid}/task"))):
        os.sched_setaffinity(thread, cores)
