"""Delayed messages: an index by due time in memory, with the contents in the store.

The index is a heap of some 90 bytes a message, whatever its size; recovery rebuilds it. The caller records in the
journal what is delayed and released.
"""

from collections import deque
from collections.abc import Callable, Collection, Generator, Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final

from gateway.kernel.backlog.ordering import in_order
from gateway.kernel.backlog.paging import Paging
from gateway.kernel.clock import SLICE_S
from gateway.kernel.messages.message import Message
from gateway.kernel.messages.paged_segment import DURABLE, REDELIVERED, PagedSegment

if TYPE_CHECKING:
    from gateway.kernel.clock import Clock, Timer
    from gateway.kernel.journal.changes import Enqueued
    from gateway.kernel.journal.journal import Journal
    from gateway.kernel.messages.death_records import DeathReason
    from gateway.kernel.messages.queued_message import QueuedMessage

#: The largest number of messages released in one step, so that a million due at once do not block everything else.
BATCH: Final = 200

#: The pause in milliseconds after a message was refused for lack of room.
PAUSE_MS: Final = 100

#: The number of contents kept in memory, so that a few short delays need no reading.
RESIDENT_DELAYED: Final = 2048

#: The longest timer in seconds, because the wall clock may be set meanwhile.
_LONGEST_SLEEP_S: Final = 60.0

#: The flag of a row whose message was cancelled while its key is still in the heap.
_CANCELLED: Final = 4

#: The flag of a row whose message was released, until another takes the row.
_RELEASED: Final = 8

#: Messages that are removed from the store, or passed over in a listing, between two readings of the clock.
_STEP: Final = 64

#: Keys that are compared with positions between two readings of the clock.
_COMPARED_AT_ONCE: Final = 4096

#: Rows that are compared with a position between two readings of the clock.
_ROWS_AT_ONCE: Final = 1 << 15

_ROW_BITS: Final = 32
_POSITION_BITS: Final = 64
_ROW_MASK: Final = (1 << _ROW_BITS) - 1
_POSITION_MASK: Final = (1 << _POSITION_BITS) - 1


@dataclass(frozen=True, slots=True)
class DelayedMessage:
    """One delayed message, for listings. ``position`` identifies it; ``due_at_ms`` is wall time."""

    position: int
    due_at_ms: int
    message: Message


class DelayIndex:
    """Owns the delayed messages of one queue, and releases each once, in the order of due times.

    ``release`` takes a message that is due, or returns why there is no room for it; messages of the same due time are
    released in the order of their positions. After a refusal all wait, this one first, and after a pause a few are
    tried. A key of the heap is one integer (due time, position and row), which compares fast and needs no tuple.
    """

    __slots__ = (
        "_batch",
        "_clock",
        "_due",
        "_free",
        "_journal",
        "_paging",
        "_paused_until_ms",
        "_release",
        "_resident",
        "_rows",
        "_timer",
        "length",
    )

    def __init__(self, journal: "Journal", release: "Callable[[QueuedMessage], DeathReason | None]") -> None:
        self._journal = journal
        self._clock: Clock = journal.clock
        self._paging = Paging(journal)
        self._release = release
        self._due: list[int] = []
        self._rows = PagedSegment()
        self._free: list[int] = []
        self._resident: dict[int, QueuedMessage] = {}
        self._timer: tuple[int, Timer] | None = None
        self._batch = BATCH
        self._paused_until_ms = 0
        self.length = 0

    def __len__(self) -> int:
        return self.length

    # In

    def hold(self, entry: "QueuedMessage", due_at_ms: int) -> None:
        """Delay a message. A durable one is in the store already; any other is spilled if many wait."""
        is_resident = len(self._resident) < RESIDENT_DELAYED
        content_id = entry.message.id
        if not entry.is_durable:
            content_id = 0 if is_resident else self._journal.spilled(entry.message)
        flags = (DURABLE if entry.is_durable else 0) | (REDELIVERED if entry.is_redelivered else 0)
        size = len(entry.message.body)
        row = self._row(entry.position, content_id, entry.enqueued_at_ms, entry.deliveries, size, flags)
        if is_resident:
            self._resident[row] = entry
        self._index(due_at_ms, entry.position, row)

    def restore(self, change: "Enqueued", is_redelivered: bool) -> None:
        """Delay a message found by recovery."""
        flags = DURABLE | REDELIVERED if is_redelivered else DURABLE
        numbers = change.position, change.message_id, change.enqueued_at_ms, change.delivery_count, change.body_size
        self._index(change.due_at_ms, change.position, self._row(*numbers, flags))

    def _row(self, *numbers: int) -> int:
        """Write a message's numbers to a free row; return the row."""
        if not self._free:
            self._rows.add(*numbers)
            return len(self._rows) - 1
        row = self._free.pop()
        self._rows.replace(row, *numbers)
        return row

    def _index(self, due_at_ms: int, position: int, row: int) -> None:
        heappush(self._due, ((due_at_ms << _POSITION_BITS | position) << _ROW_BITS) | row)
        self.length += 1
        self.wake()

    # Out

    def wake(self) -> None:
        """Set the timer for the next due message."""
        if not self._due:
            return
        due_at_ms = max(self._due[0] >> (_POSITION_BITS + _ROW_BITS), self._paused_until_ms)
        if self._timer is not None:
            if self._timer[0] <= due_at_ms:
                return
            self._timer[1].cancel()
        delay_s = max(0, due_at_ms - self._clock.wall_ms()) / 1000
        self._timer = due_at_ms, self._clock.call_later(min(delay_s, _LONGEST_SLEEP_S), self._ring)

    def _ring(self) -> None:
        self._timer = None
        self._clock.background.add_later(self._releasing())  # many queues may release messages in one turn

    def _releasing(self) -> Iterator[None]:
        """Release one batch, or what a slice has time for; the rest of the due messages comes with the next one.

        The release of one message may take milliseconds, if it is for a thousand queues.
        """
        waiting = deque(self._entries(list(self._take_due(self._clock.wall_ms()))))
        count, ends_s, has_time = len(waiting), self._clock.monotonic_s() + SLICE_S, True
        try:
            while waiting and has_time and self._release(waiting[0][1]) is None:
                waiting.popleft()
                has_time = self._clock.monotonic_s() < ends_s
        finally:
            if has_time:
                self._pace(is_refused=bool(waiting))
            else:
                self._batch = count - len(waiting)
            for due_at_ms, entry in waiting:
                self.hold(entry, due_at_ms)
            self.wake()
        yield

    def _pace(self, is_refused: bool) -> None:
        """After a refusal pause and start with a batch of one message; double the batch after each success."""
        self._paused_until_ms = self._clock.wall_ms() + PAUSE_MS if is_refused else 0
        self._batch = 1 if is_refused else min(2 * self._batch, BATCH)

    def _take_due(self, now_ms: int) -> Iterator[tuple[int, int]]:
        """Yield due time and row of the messages that are due, at most one batch."""
        end = (now_ms + 1) << (_POSITION_BITS + _ROW_BITS)
        count = 0
        while self._due and self._due[0] < end and count < self._batch:
            key = heappop(self._due)
            row = key & _ROW_MASK
            if self._rows.flags[row] & _CANCELLED:
                self._free.append(row)
            else:
                count += 1
                yield key >> (_POSITION_BITS + _ROW_BITS), row

    def _entries(self, due: list[tuple[int, int]]) -> "Iterator[tuple[int, QueuedMessage]]":
        """Yield the messages of these rows in the same order, each with its due time, and free the rows."""
        rows = [row for _, row in due]
        paged = self._segment(row for row in rows if row not in self._resident)
        found = {entry.position: entry for entry in self._paging.page_in(paged)}
        positions = [self._rows.positions[row] for row in rows]
        for row in rows:
            if (entry := self._resident.pop(row, None)) is not None:
                found[entry.position] = entry
        for row in rows:
            self._rows.flags[row] |= _RELEASED
        self._free += rows
        self.length -= len(rows)
        for (due_at_ms, _), position in zip(due, positions, strict=True):
            if position in found:  # its content may have been lost
                yield due_at_ms, found[position]

    # For operators

    def listing(self, first: int = 0, count: int = 100) -> Iterator[DelayedMessage | None]:
        """Yield some of the messages, those due soonest first; ``None`` at a point where other work may run."""
        cancelled = len(self._due) - self.length
        passed = 0
        for number, key in enumerate(in_order(list(self._due), first + count + cancelled)):
            if key is None or number % _STEP == 0:
                yield None
            if key is None or self._row_of(key) is None:
                continue
            passed += 1
            if passed > first + count:
                return
            if passed > first and (found := self.look_at(key)) is not None:
                yield DelayedMessage(found[0].position, found[1], found[0].message)

    def cancel(self, position: int) -> Generator[None, None, bool]:
        """Forget the message at a position, which is searched in steps; return whether it was there."""
        for start in range(0, len(self._rows), _ROWS_AT_ONCE):
            row = self._row_at(position, start, start + _ROWS_AT_ONCE)
            if row is not None:
                self._forget(row)
                return True
            yield
        return False

    def keys(self) -> list[int]:
        """Return the keys of all messages, in no particular order; they sort by due time."""
        return list(self._due)

    def keys_at(self, positions: Collection[int]) -> Iterator[int | None]:
        """Yield the keys of the messages at these positions; ``None`` at a point where other work may run."""
        keys = self.keys()
        for start in range(0, len(keys), _COMPARED_AT_ONCE):
            some = keys[start : start + _COMPARED_AT_ONCE]
            yield from [key for key in some if key >> _ROW_BITS & _POSITION_MASK in positions]
            yield None

    def look_at(self, key: int) -> "tuple[QueuedMessage, int] | None":
        """Return the message of a key and its due time, and leave it; ``None`` if it is gone or its content is lost."""
        row = self._row_of(key)
        if row is None:
            return None
        entry = self._resident.get(row)
        if entry is None:
            entry = self._paging.peek(self._segment(iter((row,))))[0]
        return None if entry is None else (entry, key >> (_POSITION_BITS + _ROW_BITS))

    def withdraw(self, key: int) -> "QueuedMessage | None":
        """Remove and return the message of a key; the caller records what becomes of it."""
        row = self._row_of(key)
        return None if row is None else self._withdrawn(row)

    def withdraw_at(self, position: int) -> "QueuedMessage | None":
        """Remove and return the message at a position; the caller records what becomes of it."""
        row = self._row_at(position, 0, len(self._rows))
        return None if row is None else self._withdrawn(row)

    def _withdrawn(self, row: int) -> "QueuedMessage | None":
        entry = self._resident.pop(row, None)
        if entry is None:
            entry = next(iter(self._paging.page_in(self._segment(iter((row,))))), None)
        self._rows.flags[row] |= _CANCELLED
        self.length -= 1
        return entry

    def _row_of(self, key: int) -> int | None:
        """Return the row of a key whose message is still delayed."""
        row = key & _ROW_MASK
        if row >= len(self._rows) or self._rows.positions[row] != key >> _ROW_BITS & _POSITION_MASK:
            return None
        return None if self._rows.flags[row] & (_CANCELLED | _RELEASED) else row

    def _row_at(self, position: int, start: int, stop: int) -> int | None:
        """Return the row, from ``start`` up to ``stop``, of a message that is still delayed."""
        try:
            row = self._rows.positions.index(position, start, stop)
            while self._rows.flags[row] & (_CANCELLED | _RELEASED):
                row = self._rows.positions.index(position, row + 1, stop)
        except ValueError:
            return None
        return row

    def clear(self) -> int:
        """Forget every message; return how many there were. The store removes a large number in later turns."""
        count = self.length
        self._clock.background.add(_forgetting(self._journal, self._due, self._rows, self._resident))
        self._due, self._rows, self._free, self._resident = [], PagedSegment(), [], {}
        self.length = 0
        if self._timer is not None:
            self._timer[1].cancel()
            self._timer = None
        return count

    def close(self) -> None:
        """Forget every message and the release callback: the queue is deleted.

        The callback refers to the queue, which must not stay in a reference cycle after its deletion.
        """
        self.clear()
        self._release = _accept

    def _forget(self, row: int) -> None:
        if self._rows.content_ids[row]:
            self._journal.dequeued_segment(self._segment(iter((row,))))
        self._resident.pop(row, None)
        self._rows.flags[row] |= _CANCELLED
        self.length -= 1

    def _segment(self, rows: "Iterator[int]") -> PagedSegment:
        segment = PagedSegment()
        for row in rows:
            segment.add(*self._rows.row(row))
        return segment


def _forgetting(
    journal: "Journal", due: list[int], rows: PagedSegment, resident: "dict[int, QueuedMessage]"
) -> Iterator[None]:
    """Return the steps in which the store removes the messages of an index that was cleared."""
    while due:
        segment = PagedSegment()
        for key in due[-_STEP:]:
            row = key & _ROW_MASK
            if not rows.flags[row] & _CANCELLED:
                if rows.content_ids[row]:
                    segment.add(*rows.row(row))
                resident.pop(row, None)
        del due[-_STEP:]
        journal.dequeued_segment(segment)
        yield


def _accept(entry: "QueuedMessage") -> "DeathReason | None":
    """Accept and drop a message of a deleted queue."""
    return None
