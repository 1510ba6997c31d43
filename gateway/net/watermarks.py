"""How much memory the broker uses and how much disk is left: measured every few seconds, told to the alarms."""

import os
import shutil
from pathlib import Path
from typing import Final

from gateway.kernel.alarms import Alarms, Resource

#: How often to look, in seconds; RabbitMQ's vm_memory_monitor looks as often.
INTERVAL_S: Final = 2.5


class Watermarks:
    """Compares what is used with the limits. ``memory_limit`` and ``disk_free_limit`` are in bytes."""

    def __init__(self, alarms: Alarms, data: Path, memory_limit: int, disk_free_limit: int) -> None:
        self._alarms = alarms
        self._data = data
        self.memory_limit = memory_limit
        self.disk_free_limit = disk_free_limit

    def check(self) -> None:
        """Measure, and raise or clear the alarms."""
        used = memory_used()
        self._alarms.set(Resource.MEMORY, used > self.memory_limit, f"{used} of {self.memory_limit} bytes used")
        try:
            free = shutil.disk_usage(self._data).free
        except OSError as error:
            self._alarms.set(Resource.DISK, True, f"cannot tell how much is free: {error}")
            return
        self._alarms.set(Resource.DISK, free < self.disk_free_limit, f"{free} of {self.disk_free_limit} bytes free")


def memory_limit(watermark: float | int) -> int:
    """Return the limit in bytes for a setting that is a fraction of the machine's memory, or bytes."""
    return int(watermark * memory_total()) if isinstance(watermark, float) else watermark


def memory_total() -> int:
    """Return how much memory this process may use: the machine's, or its control group's if that is less."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
    except OSError:
        return total
    return min(total, int(limit)) if limit.isdigit() else total


def memory_used() -> int:
    """Return the bytes of memory this process holds for itself.

    Pages of the store's file are not counted: the system takes them back whenever it needs them.
    """
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    return 0
