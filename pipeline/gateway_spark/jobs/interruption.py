"""An interrupt from the keyboard while a query runs: the driver ends its question to Spark before it hears of it.

PySpark's own handler asks the JVM something in the middle of another question, and what comes of that is tracebacks.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interruption:
    """Notes the first interrupt. The second one, of somebody who will not wait, is a ``KeyboardInterrupt`` at once."""

    def __init__(self) -> None:
        self.is_asked = False

    def note(self, number: int, frame: FrameType | None) -> None:
        """Handle the signal."""
        if self.is_asked:
            raise KeyboardInterrupt
        self.is_asked = True


@contextmanager
def noted_interrupts() -> Iterator[Interruption]:
    """Note an interrupt while the block lasts. :raises KeyboardInterrupt: at its end, if there was one."""
    interruption = Interruption()
    if threading.current_thread() is not threading.main_thread():  # only the main one hears of signals
        yield interruption
        return
    earlier = signal.signal(signal.SIGINT, interruption.note)
    try:
        yield interruption
    finally:
        signal.signal(signal.SIGINT, earlier)
    if interruption.is_asked:
        raise KeyboardInterrupt
