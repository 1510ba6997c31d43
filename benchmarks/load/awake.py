"""Cores that never sleep: what a round trip costs is the broker's doing then, not that of the machine waking up.

In a virtual machine a core that is woken costs 25 to 30 µs, which the kernel books on whoever wakes it or runs first:
ten times what a broker does for a small message, and never twice the same. With one message outstanding each message
pays for it, and the figures tell of the hypervisor.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

#: Runs only while nobody else wants the core, and is put aside the moment somebody does.
_SPIN: Final = """
import os, sys
os.sched_setaffinity(0, {int(sys.argv[1])})
os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
while os.getppid() == int(sys.argv[2]):
    for _ in range(1_000_000):
        pass
"""


@contextmanager
def cores_awake() -> Iterator[None]:
    """Keep every core awake while the block lasts, with a process for each that has the lowest priority there is."""
    spinning = [
        subprocess.Popen([sys.executable, "-c", _SPIN, str(core), str(os.getpid())])
        for core in sorted(os.sched_getaffinity(0))
    ]
    try:
        yield
    finally:
        for process in spinning:
            process.kill()
            process.wait()
