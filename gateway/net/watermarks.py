"""Measures memory use and free disk space every few seconds, and sets the alarms.

Memory is the process's own resident memory (``RssAnon``), for which the system needs RAM. It includes freed memory
until that is returned to the system, so it is returned before the alarm is raised.
"""

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from gateway.kernel.alarms import Alarms, Resource
from gateway.net.allocator import trim_heap

#: Interval of the measurement in seconds, as of RabbitMQ's vm_memory_monitor.
INTERVAL_S: Final = 2.5

#: Interval while an alarm is set or memory is near its limit, in seconds. It is short because returning memory takes
#: some 0.3 ms for each megabyte freed since the last time: 190 ms for 560 MB. The allocator is locked meanwhile, so
#: doing it in another thread would not help.
SHORT_INTERVAL_S: Final = 0.1

#: The share of the limit above which freed memory is returned to the system.
NEAR: Final = 0.5

#: Returning memory helped if it freed this many bytes. It takes at most these shares of the time, if it helped and if
#: it did not.
_WORTH_IT: Final = 8 * 2**20
_SHARE_OF_TIME_IF_WORTH_IT: Final = 0.15
_SHARE_OF_TIME: Final = 0.05

#: The longest interval between two tries, in seconds: with memory above its limit, and below.
_LONGEST_WAIT_WITH_ALARM_S: Final = 0.5
_LONGEST_WAIT_S: Final = 8.0


class Watermarks:
    """Compares memory and disk use with their limits. ``memory_limit`` and ``disk_free_limit`` are in bytes.

    ``collect`` is the last attempt before the memory alarm is raised: it runs a garbage collection, and returns whether
    it ran. ``now_s``, ``memory`` and ``disk_free`` measure the time, the memory used, and the free bytes of the disk of
    a directory.
    """

    def __init__(
        self,
        alarms: Alarms,
        data: Path,
        memory_limit: int,
        disk_free_limit: int,
        collect: Callable[[], bool] = lambda: False,
        now_s: Callable[[], float] = time.monotonic,
        memory: Callable[[], int] = lambda: memory_used(),
        disk_free: Callable[[Path], int] = lambda data: shutil.disk_usage(data).free,
    ) -> None:
        self._alarms = alarms
        self._data = data
        self._collect = collect
        self._now_s = now_s
        self._memory = memory
        self._disk_free = disk_free
        self._relief = Relief(now_s, measure=memory)
        self._next_s = 0.0
        self._is_near = False
        self.memory_limit = memory_limit
        self.disk_free_limit = disk_free_limit

    def tick(self) -> bool:
        """Check if it is time; called every ``SHORT_INTERVAL_S`` while it returns true, else a few times a second."""
        now_s = self._now_s()
        if now_s >= self._next_s:
            used = self.check()
            self._is_near = used > NEAR * self.memory_limit or bool(self._alarms)
            self._next_s = now_s + (0 if self._is_near else INTERVAL_S - SHORT_INTERVAL_S / 2)
        return self._is_near

    def check(self) -> int:
        """Measure, and set or clear the alarms; return the bytes of memory used."""
        used = self._memory_used()
        self._alarms.set(Resource.MEMORY, used > self.memory_limit, f"{used} of {self.memory_limit} bytes used")
        try:
            free = self._disk_free(self._data)
        except OSError as error:
            self._alarms.set(Resource.DISK, True, f"cannot measure the free space: {error}")
            return used
        self._alarms.set(Resource.DISK, free < self.disk_free_limit, f"{free} of {self.disk_free_limit} bytes free")
        return used

    def _memory_used(self) -> int:
        """Return the memory use after freed memory was returned to the system, if that is worth its time."""
        used = self._memory()
        if used > NEAR * self.memory_limit:
            used = self._relief.after(used, self.memory_limit)
        if used > self.memory_limit and self._collect():
            used = self._relief.after(self._memory(), self.memory_limit, is_urgent=True)
        return used


class Relief:
    """Returns freed memory to the system: often while that helps, less and less often while it does not.

    There is no cheap way to measure the free memory inside the heap, so it is tried.
    """

    def __init__(
        self,
        now_s: Callable[[], float] = time.monotonic,
        trim_heap: Callable[[], None] = trim_heap,
        measure: Callable[[], int] = lambda: memory_used(),
    ) -> None:
        self._now_s = now_s
        self._trim_heap = trim_heap
        self._measure = measure
        self._wait_s = SHORT_INTERVAL_S
        self._not_before_s = 0.0

    def after(self, used: int, limit: int, *, is_urgent: bool = False) -> int:
        """Return the bytes of memory used, after returning freed memory if that is due."""
        began_s = self._now_s()
        if began_s < self._not_before_s and not is_urgent:
            return used
        self._trim_heap()
        ended_s = self._now_s()
        left = self._measure()
        longest_s = _LONGEST_WAIT_WITH_ALARM_S if used > limit else _LONGEST_WAIT_S
        has_helped = used - left > _WORTH_IT
        self._wait_s = SHORT_INTERVAL_S if has_helped else min(2 * self._wait_s, longest_s)
        share = _SHARE_OF_TIME_IF_WORTH_IT if has_helped else _SHARE_OF_TIME
        self._not_before_s = ended_s + max(self._wait_s, (ended_s - began_s) / share) - SHORT_INTERVAL_S / 2
        return left


def memory_limit(watermark: float | int) -> int:
    """Return the limit in bytes for a setting that is a fraction of the machine's memory, or bytes."""
    return int(watermark * memory_total()) if isinstance(watermark, float) else watermark


def memory_total() -> int:
    """Return the memory this process may use: the machine's, or its control group's if that is less."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
    except OSError:
        return total
    return min(total, int(limit)) if limit.isdigit() else total


def memory_used() -> int:
    """Return the bytes of memory this process holds for itself.

    Pages of the store's file are not counted: the system reclaims them when it needs memory.
    """
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    return 0
