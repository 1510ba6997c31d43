"""How far a consumer that does not want everything has looked at what waits in its queue."""

from collections import deque
from heapq import heappop, heappush
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gateway.kernel.backlog.ready import Ready
    from gateway.kernel.backlog.waiting import Waiting
    from gateway.kernel.messages.queued_message import QueuedMessage


class Search:
    """One consumer's search among the waiting messages: it looks at each once, and again at one that came back.

    The next is always the one that the queue would serve first. ``seen`` is a position up to which there is nothing
    left to look at but what came back.
    """

    __slots__ = ("_ready", "_search_by_row", "seen")

    def __init__(self, ready: "Waiting") -> None:
        self._ready = ready
        self._search_by_row: dict[Ready, RowSearch] = {}
        self.seen = 0

    @property
    def is_over(self) -> bool:
        """Whether there is nothing left to look at."""
        return all(search.is_over(self.seen) for search in self._searches())

    def next(self) -> "QueuedMessage | None":
        """Return the next message, which counts as looked at from now on; ``None`` when there is none.

        It stays where it is, and may be gone by then.
        """
        for search in self._searches():  # a loop: compiled, a generator expression would ask all of them at once
            if (entry := search.next(self.seen)) is not None:
                return entry
        return None

    def _searches(self) -> "Iterator[RowSearch]":
        for row in self._ready.rows():
            search = self._search_by_row.get(row)
            if search is None:
                search = self._search_by_row[row] = RowSearch(row)
            yield search


class RowSearch:
    """The same for one row: up to a position all was looked at, and what came back since is to be looked at *again*."""

    __slots__ = ("_again", "_returns", "_row", "_run", "_seen")

    def __init__(self, row: "Ready") -> None:
        self._row = row
        self._seen = 0
        self._run: deque[QueuedMessage] = deque()
        self._returns = 0
        self._again: list[int] = []  # a heap of positions

    def is_over(self, seen: int) -> bool:
        """Whether there is nothing left to look at, knowing all up to the position ``seen``."""
        row = self._row
        return row.newest <= max(seen, self._seen) and not self._again and self._returns == row.returns

    def next(self, seen: int) -> "QueuedMessage | None":
        """Return the next message behind the position ``seen``, or one that came back; ``None`` when there is none."""
        row, again = self._row, self._again
        if self._returns != row.returns:
            for position in row.came_back_since(self._returns):
                heappush(again, position)
            self._returns = row.returns
        ahead = self._ahead(seen)
        while again and (ahead is None or again[0] < ahead.position):
            if (returned := row.came_back(heappop(again))) is not None:
                return returned
        if ahead is not None:
            self._run.popleft()
            self._seen = ahead.position
        return ahead

    def _ahead(self, seen: int) -> "QueuedMessage | None":
        """Return the next message but for those that came back."""
        if seen > self._seen:
            self._seen = seen
            self._run.clear()
        if not self._run and self._row.newest > self._seen:
            self._run.extend(self._row.after(self._seen))
        return self._run[0] if self._run else None
