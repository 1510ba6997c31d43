"""Resource usage of the process, from the operating system."""

import gc
import os
import resource
import shutil
from contextlib import suppress
from pathlib import Path

from gateway.kernel.broker.broker import Broker


def usage(broker: Broker, data: Path) -> dict[str, int]:
    """Return the current and cumulative resource usage, in bytes or numbers.

    Sockets are the connections of clients, as in RabbitMQ; the bytes read and written are those of disks.
    """
    rusage, io = resource.getrusage(resource.RUSAGE_SELF), _numbers("io")
    return {
        "mem_used": memory("RssAnon"),
        "fd_used": _open_files(),
        "sockets_used": len(broker.connections),
        "proc_used": _numbers("status").get("Threads", 0),
        "disk_free": _disk_free(data),
        "gc_num": sum(generation["collections"] for generation in gc.get_stats()),
        "context_switches": rusage.ru_nvcsw + rusage.ru_nivcsw,
        "io_read_bytes": io.get("read_bytes", 0),
        "io_write_bytes": io.get("write_bytes", 0),
    }


def memory(name: str) -> int:
    """Return one of Linux's memory figures of the process, in bytes."""
    return _numbers("status").get(name, 0) * 1024


def _numbers(file: str) -> dict[str, int]:
    """Return the numbers in a file of ``/proc/self`` by name; empty on other systems."""
    found = {}
    with suppress(OSError):
        for line in Path(f"/proc/self/{file}").read_text().splitlines():
            name, _, value = line.partition(":")
            number, *_ = value.split() or [""]
            if number.isdecimal():
                found[name] = int(number)
    return found


def _open_files() -> int:
    """Return the number of open files. Linux 6.2 counts them; a list of 10,000 takes 5 ms."""
    with suppress(OSError):
        return os.stat("/proc/self/fd").st_size or len(os.listdir("/proc/self/fd"))
    return 0


def _disk_free(directory: Path) -> int:
    with suppress(OSError):
        return shutil.disk_usage(directory).free
    return 0
