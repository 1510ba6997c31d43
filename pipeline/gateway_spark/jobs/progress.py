"""The progress output of a job: one line for each step, with the seconds since the start."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TextIO, TypeAlias

#: Interval between two lines about a step that takes long, in seconds.
INTERVAL_S: Final = 5.0

Wait: TypeAlias = Callable[[], bool]


class ProgressPrinter:
    """Writes lines, each flushed immediately for readers of a pipe."""

    def __init__(self, out: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._out = out if out is not None else sys.stdout
        self._clock = clock
        self._begun = clock()
        self._said = self._begun
        self._warned: set[str] = set()

    @property
    def seconds(self) -> float:
        """The seconds since the job began."""
        return self._clock() - self._begun

    def say(self, line: str) -> None:
        """Write a line."""
        self._said = self._clock()
        print(f"{self.seconds:7.1f} s  {line}", file=self._out, flush=True)

    def remind(self, state: str) -> None:
        """Write the state of a step that takes long, unless a line was written during the last seconds."""
        if self._clock() - self._said >= INTERVAL_S:
            self.say(f"... {state}")

    @contextmanager
    def waiting(self, describe: Callable[[], str], wait: Wait | None = None) -> Iterator[None]:
        """Write a line every few seconds within the block, so that a long step is not silent.

        ``describe`` returns the state of the step, or nothing to say nothing. ``wait`` returns whether the block has
        ended, after an interval or earlier; it is for tests.
        """
        ended = threading.Event()
        is_over = wait or (lambda: ended.wait(INTERVAL_S))

        def tell() -> None:
            while not is_over():
                if state := describe():
                    self.say(f"... {state}")

        thread = threading.Thread(target=tell, name="progress", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def warn(self, line: str) -> None:
        """Write a warning, once."""
        if line not in self._warned:
            self._warned.add(line)
            self.say(f"WARNING: {line}")
