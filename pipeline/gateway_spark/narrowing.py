"""A narrowed read: the bounds within which all wanted messages are."""

from collections.abc import Callable
from dataclasses import dataclass

from gateway_spark.offsets import Key


@dataclass(frozen=True, slots=True)
class Interval:
    """Integers from ``begin`` to before ``end``; ``None`` for no bound."""

    begin: int | None = None
    end: int | None = None

    def within(self, other: "Interval") -> "Interval":
        """Return the intersection."""
        begins = [each for each in (self.begin, other.begin) if each is not None]
        ends = [each for each in (self.end, other.end) if each is not None]
        return Interval(max(begins, default=None), min(ends, default=None))


@dataclass(frozen=True, slots=True)
class Narrowing:
    """The narrowed read: offsets, times in ms since the epoch, queues and partitions."""

    offsets: Interval = Interval()
    times_ms: Interval = Interval()
    tests: tuple[Callable[[Key], bool], ...] = ()

    def allows(self, key: Key) -> bool:
        """Return whether a partition may contain matching messages."""
        return all(test(key) for test in self.tests)
