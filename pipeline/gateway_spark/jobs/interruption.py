"""Handling of Ctrl-C during a query: the driver's current call to Spark is completed first.

PySpark's own handler calls the JVM in the middle of another call, which causes tracebacks.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interruption:
    """Records the first interrupt. The second one raises ``KeyboardInterrupt`` immediately."""

    def __init__(self) -> None:
        self.is_asked = False

    def note(self, number: int, frame: FrameType | None) -> None:
        """Handle the signal."""
        if self.is_asked:
            raise KeyboardInterrupt
        self.is_asked = True


@contextmanager
def noted_interrupts() -> Iterator[Interruption]:
    """Record an interrupt within the block. :raises KeyboardInterrupt: at its end, if there was one."""
    interruption = Interruption()
    if threading.current_thread() is not threading.main_thread():  # only the main thread receives signals
        yield interruption
        return
    earlier = signal.signal(signal.SIGINT, interruption.note)
    try:
        yield interruption
    finally:
        signal.signal(signal.SIGINT, earlier)
    if interruption.is_asked:
        raise KeyboardInterrupt
