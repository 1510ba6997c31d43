"""The progress output of a job: one line for each step, with the seconds since the start."""

import sys
import time
from collections.abc import Callable
from typing import TextIO


class ProgressPrinter:
    """Writes lines, each flushed immediately for readers of a pipe."""

    def __init__(self, out: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._out = out if out is not None else sys.stdout
        self._clock = clock
        self._begun = clock()
        self._warned: set[str] = set()

    @property
    def seconds(self) -> float:
        """The seconds since the job began."""
        return self._clock() - self._begun

    def say(self, line: str) -> None:
        """Write a line."""
        print(f"{self.seconds:7.1f} s  {line}", file=self._out, flush=True)

    def warn(self, line: str) -> None:
        """Write a warning, once."""
        if line not in self._warned:
            self._warned.add(line)
            self.say(f"WARNING: {line}")
