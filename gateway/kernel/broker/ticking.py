"""The connections that tick, and those that rest until a later tick: an idle one has nothing to check for an hour."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Protocol, TypeVar

T = TypeVar("T")


class Ticker(Protocol):
    """A connection, as its ticks see it. ``wakes_at`` is the number of the tick until which it rests, 0 if it is awake;
    ``rests_since`` that of its last tick.
    """

    wakes_at: int
    rests_since: int

    def tick(self) -> int:
        """Check heartbeats and timeouts; called ``TICKS_PER_S`` times a second while it is awake.

        Return the number of ticks that it may rest, because nothing is due in them unless it receives or sends.
        """
        ...

    def rested(self, ticks: int) -> None:
        """Count ticks in which it rested; it is awake."""
        ...

    def fail(self) -> None:
        """Close the connection after an unexpected exception; called from the exception handler."""
        ...


class Ticking:
    """Numbers the ticks. Resting connections are in a bucket of the tick that wakes them, so that 10,000 idle ones cost
    a few calls in each tick, and not 10,000.

    ``_lately`` are those that began to rest since the last call of ``take_active``.
    """

    def __init__(self) -> None:
        self._now = 0
        self._awake: dict[Ticker, None] = {}
        self._lately: dict[Ticker, None] = {}
        self._resting: defaultdict[int, dict[Ticker, None]] = defaultdict(dict)

    def __len__(self) -> int:
        """Return the number of connections that are awake."""
        return len(self._awake)

    def add(self, ticker: Ticker) -> None:
        """Add a connection, awake."""
        ticker.wakes_at = 0
        self._awake[ticker] = None

    def remove(self, ticker: Ticker) -> None:
        """Remove a connection; calling it twice is harmless."""
        if ticker.wakes_at:
            self._leave_bucket(ticker)
        else:
            self._awake.pop(ticker, None)
        self._lately.pop(ticker, None)

    def begin(self) -> Iterator[Ticker]:
        """Begin the next tick; yield the connections that are awake, except those that are removed meanwhile."""
        self._now += 1
        for ticker in self._resting.pop(self._now, ()):
            ticker.wakes_at = 0
            self._awake[ticker] = None
            ticker.rested(self._now - ticker.rests_since - 1)
        return present(self._awake)

    def rest(self, ticker: Ticker, ticks: int) -> None:
        """Let a connection that ticked rest for this many ticks, unless it was removed."""
        if ticker in self._awake:
            del self._awake[ticker]
            ticker.rests_since, ticker.wakes_at = self._now, self._now + ticks + 1
            self._resting[ticker.wakes_at][ticker] = None
            self._lately[ticker] = None

    def wake(self, ticker: Ticker) -> None:
        """Let a connection tick again: it receives, sends, or its state changes. Harmless if it is awake."""
        if ticker.wakes_at:
            self._leave_bucket(ticker)
            self._awake[ticker] = None
            ticker.rested(self._now - ticker.rests_since)

    def take_active(self) -> list[Ticker]:
        """Return the connections that were awake since the last call: the others neither received nor sent anything."""
        lately, self._lately = self._lately, {}
        return list(self._awake | lately)

    def _leave_bucket(self, ticker: Ticker) -> None:
        bucket = self._resting[ticker.wakes_at]
        del bucket[ticker]
        if not bucket:
            del self._resting[ticker.wakes_at]
        ticker.wakes_at = 0


def present(members: dict[T, None]) -> Iterator[T]:
    """Yield the members that are there now, except those that have gone when they are reached.

    A generator expression does not do: compiled, it looks for the next member before the caller has seen this one.
    """
    return _still_present(tuple(members), members)


def _still_present(before: tuple[T, ...], members: dict[T, None]) -> Iterator[T]:
    for member in before:
        if member in members:
            yield member
