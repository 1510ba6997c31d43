"""Waiting messages of queues with priorities: one row of messages per priority (R76-R81).

A classic queue with ``x-max-priority`` serves the highest first; a quorum queue has two levels and serves both.

Each row is a ``Ready`` of its own, so order, paging and requeueing within a priority are the same as in a queue without
priorities. A row is created with its first message.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from gateway.kernel.backlog.ready import Ready
from gateway.kernel.backlog.waiting import Waiting, WaitingRow
from gateway.kernel.messages.message import Arguments
from gateway.kernel.messages.paged_segment import PagedSegment
from gateway.kernel.untracked import untracked

if TYPE_CHECKING:
    from gateway.kernel.backlog.memory_budget import MemoryBudget
    from gateway.kernel.backlog.paging import Paging
    from gateway.kernel.journal.changes import Enqueued
    from gateway.kernel.journal.enqueued_run import EnqueuedRun
    from gateway.kernel.messages.queued_message import QueuedMessage

#: The least number of messages that a row keeps in memory, however many rows share the queue's limit.
_FEWEST_RESIDENT: Final = 64


def ready_for(arguments: Arguments, paging: "Paging", resident: int, reserve: "MemoryBudget") -> Waiting:
    """Return an empty store of waiting messages for the queue's arguments."""
    highest = arguments.get("x-max-priority", 0)
    if isinstance(highest, int) and highest > 0:
        return PriorityReady(highest, paging, resident, reserve)
    if arguments.get("x-queue-type") == "quorum":
        return TwoLevelReady(paging, resident, reserve)
    return Ready(paging, resident, reserve)


class PriorityReady(Waiting):
    """Waiting messages by priority, and in the order of their positions within one.

    ``highest`` is the greatest priority; a message with a greater one gets this one, a message without one gets 0
    (R77). ``_filled`` has a bit per row that may hold a message. The other parameters are those of ``Ready``:
    ``resident`` is divided among the rows, ``reserve`` is shared by them.
    """

    __slots__ = ("_filled", "_highest", "_paging", "_reserve", "_resident", "_rows")

    def __init__(self, highest: int, paging: "Paging", resident: int, reserve: "MemoryBudget") -> None:
        super().__init__()
        self._highest = highest
        self._paging = paging
        self._reserve = reserve
        self._resident = min(resident, max(_FEWEST_RESIDENT, resident // (highest + 1)))
        self._rows: list[Ready | None] = [None] * (highest + 1)
        self._filled = 0

    def append(self, entry: "QueuedMessage") -> None:
        """Add the newest message of its priority."""
        message = entry.message
        self._row(message.header.priority).append(entry)
        self.length += 1
        self.bytes += len(message.body)

    def extend(self, entries: "list[QueuedMessage]", size: int) -> None:
        """Add the newest messages of their priority, which is that of all of them."""
        self.length += len(entries)
        self.bytes += size
        self._row(entries[0].message.header.priority).extend(entries, size)

    def popleft(self) -> "QueuedMessage":
        """Remove and return the oldest message of the highest priority. :raises IndexError: if there is none."""
        while self._filled:
            priority = self._filled.bit_length() - 1
            row = self._rows[priority]
            assert row is not None
            if row.length:
                try:
                    entry = row.popleft()
                except IndexError:  # the remaining messages of the row had lost their contents
                    self._recount()
                    continue
                self.length -= 1
                self.bytes -= len(entry.message.body)
                return entry
            self._filled ^= 1 << priority
        self._recount()
        raise IndexError("no message waits")

    def peek(self) -> "QueuedMessage | None":
        """Return the next message and leave it in place; ``None`` if there is none."""
        while self._filled:
            priority = self._filled.bit_length() - 1
            row = self._rows[priority]
            assert row is not None
            entry = row.peek()
            if entry is not None:
                return entry
            self._filled ^= 1 << priority
        self._recount()
        return None

    def put_back(self, entry: "QueuedMessage") -> None:
        """Return a message to the place it was taken from (R81, R88)."""
        self._row(entry.message.header.priority).put_back(entry)
        self.length += 1
        self.bytes += len(entry.message.body)

    def restore(self, change: "Enqueued", is_redelivered: bool) -> None:
        """Add the newest message of its priority, found in the store by recovery."""
        self._row(change.priority).restore(change, is_redelivered)
        self.length += 1
        self.bytes += change.body_size

    def restore_run(self, run: "EnqueuedRun", flags: bytes) -> None:
        """Add the newest messages of the lowest priority, found in the store by recovery."""
        self._row(0).restore_run(run, flags)
        self.length += len(run)
        self.bytes += sum(run.body_sizes)

    def take_out(self, seen: "QueuedMessage") -> "QueuedMessage | None":
        """Remove and return a message seen in its row; ``None`` if it is gone."""
        entry = self._row(seen.message.header.priority).take_out(seen)
        if entry is not None:
            self.length -= 1
            self.bytes -= len(entry.message.body)
        return entry

    def rows(self) -> Iterator[WaitingRow]:
        """Iterate over the rows of priorities in use, the highest first."""
        return self._served()

    def numbered_rows(self) -> Iterator[tuple[int, WaitingRow]]:
        """Iterate over the rows as ``rows`` does, each with its distance from the highest priority."""
        return ((number, row) for number, row in enumerate(reversed(self._rows)) if row is not None)

    def remove(self, positions: set[int]) -> "list[QueuedMessage]":
        """Remove the messages at these positions; return them in the order of their positions."""
        removed = [entry for row in self._served() for entry in row.remove(positions)]
        self._recount()
        return sorted(removed, key=lambda entry: entry.position)

    def positions(self) -> Iterator[int]:
        """Iterate over the positions of all messages, in no particular order."""
        for row in self._served():
            yield from row.positions()

    def heads(self) -> "Iterator[QueuedMessage]":
        """Iterate over the oldest message of each priority, the highest first."""
        for row in self._served():
            yield from row.heads()

    def paged(self) -> Iterator[PagedSegment]:
        """Iterate over the paged messages, those of the highest priority first."""
        for row in self._served():
            yield from row.paged()

    def clear(self) -> "tuple[list[QueuedMessage], list[PagedSegment]]":
        """Remove everything; return the entries that were in memory and the paged segments."""
        entries: list[QueuedMessage] = untracked([])
        segments: list[PagedSegment] = []
        for row in self._served():
            in_memory, paged = row.clear()
            entries += in_memory
            segments += paged
        self._filled, self.length, self.bytes = 0, 0, 0
        return entries, segments

    def resident(self) -> "Iterator[QueuedMessage]":
        """Iterate over the messages in memory, those of the highest priority first."""
        for row in self._served():
            yield from row.resident()

    def _row(self, priority: int) -> Ready:
        """Return the row of a priority, which will get a message."""
        if priority > self._highest:
            priority = self._highest
        row = self._rows[priority]
        if row is None:
            row = self._rows[priority] = Ready(self._paging, self._resident, self._reserve)
        self._filled |= 1 << priority
        return row

    def _served(self) -> Iterator[Ready]:
        return (row for row in reversed(self._rows) if row is not None)

    def _recount(self) -> None:
        """Recompute length and size after some messages turned out to have lost their contents."""
        self.length = sum(row.length for row in self._served())
        self.bytes = sum(row.bytes for row in self._served())


#: Messages of a quorum queue above this priority are of the high level; it is the normal priority of AMQP 1.0.
NORMAL_PRIORITY: Final = 4

#: The number of high messages served for each normal one.
_HIGH_SHARE: Final = 2

_BOTH_LEVELS: Final = 0b11


class TwoLevelReady(PriorityReady):
    """Waiting messages of a quorum queue, as in RabbitMQ 4: high above a priority of 4, normal otherwise.

    While messages of both levels wait, two high ones are served for one normal one, so that neither level starves; a
    high message that is older than the normal one is still served first.
    """

    __slots__ = ("_served_in_row",)

    def __init__(self, paging: "Paging", resident: int, reserve: "MemoryBudget") -> None:
        super().__init__(1, paging, resident, reserve)
        self._served_in_row = 0

    def popleft(self) -> "QueuedMessage":
        """Remove and return the next message. :raises IndexError: if there is none."""
        row = self._normal_row_if_next()
        self._served_in_row = 0 if self._served_in_row == _HIGH_SHARE else self._served_in_row + 1
        if row is None:
            return super().popleft()
        entry = row.popleft()
        self.length -= 1
        self.bytes -= len(entry.message.body)
        return entry

    def peek(self) -> "QueuedMessage | None":
        """Return the next message and leave it in place; ``None`` if there is none."""
        row = self._normal_row_if_next()
        return super().peek() if row is None else row.peek()

    def _normal_row_if_next(self) -> Ready | None:
        """Return the row of the normal level if its message is next, although high messages may wait."""
        if self._served_in_row < _HIGH_SHARE or self._filled != _BOTH_LEVELS:
            return None
        normal, high = self._rows
        assert normal is not None
        assert high is not None
        first, first_high = normal.peek(), high.peek()
        if first is None or (first_high is not None and first_high.position < first.position):
            return None
        return normal

    def _row(self, priority: int) -> Ready:
        """Return the row of a priority's level, which will get a message."""
        return super()._row(1 if priority > NORMAL_PRIORITY else 0)
