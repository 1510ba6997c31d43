"""Progress of a consumer with a filter through the waiting messages of its queue."""

from collections import deque
from heapq import heappop, heappush
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gateway.kernel.backlog.waiting import Waiting, WaitingRow
    from gateway.kernel.messages.queued_message import QueuedMessage


class Search:
    """One consumer's search among the waiting messages: it examines each once, and again when it was requeued.

    The next message is the first in the queue's order. Up to the position ``seen`` only requeued messages remain to be
    examined.
    """

    __slots__ = ("_ready", "_search_by_row", "seen")

    def __init__(self, ready: "Waiting") -> None:
        self._ready = ready
        self._search_by_row: dict[WaitingRow, RowSearch] = {}
        self.seen = 0

    @property
    def is_over(self) -> bool:
        """Whether no message is left to examine."""
        return all(search.is_over(self.seen) for search in self._searches())

    def next(self) -> "QueuedMessage | None":
        """Return the next message and mark it as examined; ``None`` when there is none.

        The message stays in the queue, and may be removed later by other code.
        """
        for search in self._searches():  # a loop: a compiled generator expression would evaluate all of them at once
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
    """A search in one row: all is examined up to a position; ``_again`` has messages requeued since."""

    __slots__ = ("_again", "_returns", "_row", "_run", "_seen")

    def __init__(self, row: "WaitingRow") -> None:
        self._row = row
        self._seen = 0
        self._run: deque[QueuedMessage] = deque()
        self._returns = 0
        self._again: list[int] = []  # a heap of positions

    def is_over(self, seen: int) -> bool:
        """Return whether no message is left to examine after the position ``seen``."""
        row = self._row
        return row.newest <= max(seen, self._seen) and not self._again and self._returns == row.returns

    def next(self, seen: int) -> "QueuedMessage | None":
        """Return the next message after the position ``seen``, or a requeued one; ``None`` when there is none."""
        row, again = self._row, self._again
        if self._returns != row.returns:
            for position in row.requeued_since(self._returns):
                heappush(again, position)
            self._returns = row.returns
        ahead = self._ahead(seen)
        while again and (ahead is None or again[0] < ahead.position):
            if (returned := row.requeued_at(heappop(again))) is not None:
                return returned
        if ahead is not None:
            self._run.popleft()
            self._seen = ahead.position
        return ahead

    def _ahead(self, seen: int) -> "QueuedMessage | None":
        """Return the next message that was not requeued."""
        if seen > self._seen:
            self._seen = seen
            self._run.clear()
        if not self._run and self._row.newest > self._seen:
            self._run.extend(self._row.after(self._seen))
        return self._run[0] if self._run else None
