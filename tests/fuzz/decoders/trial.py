"""One run of a target on one input, with limits of time and memory."""

import time
import tracemalloc
from collections.abc import Callable
from typing import Final

from tests.fuzz.decoders.laws import LawBroken
from tests.fuzz.decoders.target import Target

#: The most processor time of a run in seconds: a part that does not depend on the input, and that of a byte of it.
#: Targets run their decoders up to a dozen times, so these are generous: what they find is time that is not linear.
_MOST_S: Final = 1.0
_MOST_S_FOR_A_BYTE: Final = 100e-6

#: The most memory of a run in bytes, in the same form.
_MOST_BYTES: Final = 8 * 2**20
_MOST_BYTES_FOR_A_BYTE: Final = 2_000


def run(target: Target, data: bytes, clock: Callable[[], float] = time.thread_time) -> None:
    """Run a target. :raises LawBroken: if a law does not hold, or it takes too long. Other exceptions pass."""
    begin = clock()
    target.run(data)
    took_s = clock() - begin
    if took_s > _MOST_S + len(data) * _MOST_S_FOR_A_BYTE:
        raise LawBroken(f"{len(data)} bytes take {took_s:.2f} s")


def run_measured(target: Target, data: bytes) -> None:
    """Run a target with a limit of memory too; this takes a few times as long. Raises as ``run``."""
    tracemalloc.start()
    try:
        target.run(data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    if peak > _MOST_BYTES + len(data) * _MOST_BYTES_FOR_A_BYTE:
        raise LawBroken(f"{len(data)} bytes take {peak >> 20} MiB")
