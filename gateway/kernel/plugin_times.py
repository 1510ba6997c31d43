"""The time that calls of one object of a plugin take."""

from collections.abc import Iterable, Iterator
from typing import Final

#: A call of a plugin that takes longer than this is a fault of the plugin, in seconds.
CALL_LIMIT_S: Final = 0.1


class Overrun(Exception):
    """A call of a plugin took longer than ``CALL_LIMIT_S``."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        super().__init__(f"the call took {seconds * 1e3:.0f} ms; the limit is {CALL_LIMIT_S * 1e3:.0f} ms")


class CallTime:
    """The number of measured calls, the sum of their times and the longest, in seconds."""

    __slots__ = ("calls", "longest_s", "total_s")

    def __init__(self) -> None:
        self.calls = 0
        self.total_s = 0.0
        self.longest_s = 0.0

    def add(self, seconds: float) -> None:
        """Count a call."""
        self.calls += 1
        self.total_s += seconds
        if seconds > self.longest_s:
            self.longest_s = seconds


class PartTimes:
    """The times of the calls of several objects, which need not be hashable."""

    __slots__ = ("_by_id",)

    def __init__(self, parts: Iterable[object] = ()) -> None:
        self._by_id = {id(part): (part, CallTime()) for part in parts}

    def __iter__(self) -> Iterator[tuple[object, CallTime]]:
        """Yield the objects with their times."""
        return iter(tuple(self._by_id.values()))

    def of(self, part: object) -> CallTime:
        """Return the times of an object."""
        return self._by_id[id(part)][1]
