"""Ready messages of a queue, in order; in a long queue most of them are paged to the store.

In order of position: the *head* in memory; the *kept* runs in memory, within the memory budget of all queues; the
*paged* segments whose contents are in the store; and the *tail* in memory, which is kept or paged out next. A short
queue is all head. A paged message takes some 30 bytes of memory, whatever its size. Messages *returned* by consumers
are held separately and served first where their positions require it.
"""

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final

from gateway.kernel.backlog.buffered_runs import BufferedRuns
from gateway.kernel.backlog.paged_segments import PagedSegments
from gateway.kernel.backlog.requeued import Requeued
from gateway.kernel.backlog.waiting import WaitingRow
from gateway.kernel.messages.paged_segment import DURABLE, REDELIVERED, PagedSegment
from gateway.kernel.untracked import untracked

if TYPE_CHECKING:
    from gateway.kernel.backlog.memory_budget import MemoryBudget
    from gateway.kernel.backlog.paging import Paging
    from gateway.kernel.journal.changes import Enqueued
    from gateway.kernel.journal.enqueued_run import EnqueuedRun
    from gateway.kernel.messages.queued_message import QueuedMessage

#: The number of messages paged out at a time; fewer if fewer may be resident.
SEGMENT_LENGTH: Final = 512

#: The number of messages paged in at a time. 512 took 4 to 5 ms (as source), which lengthened the slice of a job that
#: drops messages; for each of them 128 cost no more.
PAGED_IN: Final = 128

#: Bytes of bodies that stay in memory, and that are paged out at a time: for large messages these limits come before
#: the limits in messages. Messages of 16 KB reach both at once.
RESIDENT_BYTES: Final = 32 * 2**20
SEGMENT_BYTES: Final = 8 * 2**20

#: The number of messages paged in at a time once the turn has reached its limit. One message to a fanout exchange makes
#: all queues with a length limit drop a message, and each drop may need the next message from the store.
FEW: Final = 8

#: The length and size of a tail, in segments, at which it is put away even if the turn has reached its limit.
_MOST_OVERDUE: Final = 2

#: The number of messages that ``after`` returns at a time, and the bytes of bodies if they are paged.
RUN_LENGTH: Final = 64
RUN_BYTES: Final = 2**20


class Ready(WaitingRow):
    """Waiting messages in the order of their positions: a *row*.

    ``paging`` moves contents to the store and back. ``resident`` is the number of messages that stay in memory before
    further ones need room in the ``reserve`` or are paged out. ``_gathered`` are the bytes of bodies in the tail, or in
    the segment that recovery fills.
    """

    __slots__ = (
        "_gathered",
        "_head",
        "_is_deferred",
        "_kept",
        "_paged",
        "_paging",
        "_reserve",
        "_resident",
        "_returned",
        "_segment_length",
        "_tail",
    )

    def __init__(self, paging: "Paging", resident: int, reserve: "MemoryBudget") -> None:
        super().__init__()
        self._paging = paging
        self._reserve = reserve
        self._resident = resident
        self._segment_length = min(SEGMENT_LENGTH, resident)
        self._returned: Requeued | None = None
        self._head: deque[QueuedMessage] = untracked(deque())
        self._kept: BufferedRuns | None = None
        self._paged: PagedSegments | None = None
        self._tail: list[QueuedMessage] = untracked([])
        self._gathered = 0
        self._is_deferred = False

    # First and last

    def append(self, entry: "QueuedMessage") -> None:
        """Add the newest message."""
        self.length += 1
        self.bytes += len(entry.message.body)
        if self._paged is None:
            self._head.append(entry)
            if len(self._head) >= self._resident or self.bytes >= RESIDENT_BYTES:
                self._paged = PagedSegments()
        else:
            self._tail.append(entry)
            self._gathered += len(entry.message.body)
            if len(self._tail) >= self._segment_length or self._gathered >= SEGMENT_BYTES:
                self._put_away_tail(self._paged)

    def extend(self, entries: "list[QueuedMessage]", size: int) -> None:
        """Add the newest messages, whose bodies have ``size`` bytes, as ``append`` does.

        A fault while some are put away is contained: they stay in the tail, and that is tried again.
        """
        is_full = len(self._tail) + len(entries) >= self._segment_length or self._gathered + size >= SEGMENT_BYTES
        if is_full or self._paged is None:
            for entry in entries:
                self._paging.contain(partial(self.append, entry))
            return
        self._tail += entries
        self._gathered += size
        self.length += len(entries)
        self.bytes += size

    def popleft(self) -> "QueuedMessage":
        """Remove and return the oldest message. :raises IndexError: if there is none."""
        if not self._head and self._paged is not None:
            self._refill()
        returned = self._returned
        if returned is None or (self._head and returned.first > self._head[0].position):
            entry = self._head.popleft()
        else:
            entry = self._pop_first(returned)
        self.length -= 1
        self.bytes -= len(entry.message.body)
        return entry

    def peek(self) -> "QueuedMessage | None":
        """Return the oldest message and leave it in place; ``None`` if there is none."""
        if not self._head and self._paged is not None:
            self._refill()
        returned = self._returned
        if returned is not None and (not self._head or returned.first < self._head[0].position):
            first = returned.peek()
            if self._without_lost(returned):
                return self.peek()
            return first
        return self._head[0] if self._head else None

    def put_back(self, entry: "QueuedMessage") -> None:
        """Return a message to the place it was taken from (R88)."""
        self.length += 1
        self.bytes += len(entry.message.body)
        self.returns += 1
        if self._returned is None:
            self._returned = Requeued(self._paging, self._resident, self._segment_length)
        self._returned.add(entry, self.returns)

    def restore(self, change: "Enqueued", is_redelivered: bool) -> None:
        """Add the newest message, found in the store by recovery."""
        segment = self._restored_segment()
        self._gathered += change.body_size
        flags = DURABLE | REDELIVERED if is_redelivered else DURABLE
        segment.add(
            change.position, change.message_id, change.enqueued_at_ms, change.delivery_count, change.body_size, flags
        )
        self.length += 1
        self.bytes += change.body_size

    def restore_run(self, run: "EnqueuedRun", flags: bytes) -> None:
        """Add the newest messages, found in the store by recovery; ``flags`` has those of ``PagedSegment`` for each."""
        first = 0
        while first < len(run):
            segment = self._restored_segment()
            last = min(first + self._segment_length - len(segment), len(run))
            size = sum(run.body_sizes[first:last])
            while self._gathered + size > SEGMENT_BYTES and last > first + 1:
                last = first + (last - first) // 2
                size = sum(run.body_sizes[first:last])
            segment.extend(
                (
                    run.positions[first:last],
                    run.message_ids[first:last],
                    run.enqueued_at_ms[first:last],
                    run.delivery_counts[first:last],
                    run.body_sizes[first:last],
                    flags[first:last],
                )
            )
            self._gathered += size
            self.length += last - first
            self.bytes += size
            first = last

    def _restored_segment(self) -> PagedSegment:
        """Return the segment that recovery fills."""
        if self._paged is None:
            self._paged = PagedSegments()
        is_full = len(self._paged[-1]) >= self._segment_length if self._paged else True
        if is_full or self._gathered >= SEGMENT_BYTES:
            self._paged.append(PagedSegment())
            self._gathered = 0
        return self._paged[-1]

    # In the middle

    @property
    def newest(self) -> int:
        """The last position, not counting requeued messages; 0 if there is none."""
        if self._tail:
            return self._tail[-1].position
        if self._paged:
            return self._paged.newest
        if self._kept is not None and not self._kept.is_empty:
            return self._kept.newest
        return self._head[-1].position if self._head else 0

    def after(self, position: int, most: int = RUN_LENGTH) -> "list[QueuedMessage]":
        """Return the next messages after a position, at most ``most``, without the requeued ones; all stay here."""
        head = self._head
        if head and head[-1].position > position:
            first = bisect_right(head, position, key=_position)
            return list(islice(head, first, first + most))
        kept = self._kept
        if kept is not None and not kept.is_empty and kept.newest > position:
            return kept.after(position, most)
        while self._paged and self._paged.newest > position:
            run = self._paged.run_after(position, most, RUN_BYTES)
            seen = [entry for entry in self._paging.peek(run) if entry is not None]
            if len(seen) == len(run):
                return seen
            self.remove(set(run.positions) - {entry.position for entry in seen})  # their contents are lost
        first = bisect_right(self._tail, position, key=_position)
        return self._tail[first : first + most]

    def requeued_at(self, position: int) -> "QueuedMessage | None":
        """Return the message requeued at a position; ``None`` if there is none."""
        if (returned := self._returned) is None:
            return None
        entry = returned.find(position)
        self._without_lost(returned)
        return entry

    def requeued_positions(self) -> list[int]:
        """Return the positions of all requeued messages, in no particular order."""
        return [] if self._returned is None else self._returned.positions()

    def look_at(self, position: int) -> "QueuedMessage | None":
        """Return the message at a position and leave it where it is; ``None`` if there is none."""
        if self._returned is not None and (entry := self._returned.look_at(position)) is not None:
            return entry
        following = self.after(position - 1, 1)
        return following[0] if following and following[0].position == position else None

    def requeued_since(self, number: int) -> list[int]:
        """Return the positions of waiting messages that were requeued after this value of ``returns``."""
        return [] if self._returned is None else self._returned.since(number)

    def take_out(self, seen: "QueuedMessage") -> "QueuedMessage | None":
        """Remove and return a message that was seen here; ``None`` if it is gone."""
        entry = self._pop_returned(seen.position) or self._out_of_the_midst(seen.position)
        if entry is not None:
            self.length -= 1
            self.bytes -= len(entry.message.body)
            if not self._head and self._paged is not None:
                self._refill()
        return entry

    def rows(self) -> "Iterator[WaitingRow]":
        """Iterate over the rows: this one only."""
        yield self

    def numbered_rows(self) -> "Iterator[tuple[int, WaitingRow]]":
        """Iterate over the rows: this one only."""
        yield 0, self

    def remove(self, positions: set[int]) -> "list[QueuedMessage]":
        """Remove the messages at these positions; return them in the order of their positions."""
        removed = [entry for entry in (*self._head, *self._tail) if entry.position in positions]
        if removed:
            self._head = untracked(deque(entry for entry in self._head if entry.position not in positions))
            self._tail = untracked([entry for entry in self._tail if entry.position not in positions])
        if self._returned is not None:
            requeued = [self._pop_returned(position) for position in sorted(positions)]
            removed += [entry for entry in requeued if entry is not None]
        if self._kept is not None:
            removed += self._kept.take(positions)
        if self._paged is not None:
            for segment in self._paged.take(positions):
                removed += self._paged_in(segment)
        self.length -= len(removed)
        self.bytes -= sum(len(entry.message.body) for entry in removed)
        return sorted(removed, key=_position)

    def _pop_returned(self, position: int) -> "QueuedMessage | None":
        if self._returned is None:
            return None
        returned = self._returned
        entry = returned.pop(position)
        self._without_lost(returned)
        if not len(returned):
            self._returned = None
        return entry

    def _pop_first(self, returned: Requeued) -> "QueuedMessage":
        """Remove and return the first requeued message. :raises IndexError: if all lost their contents."""
        first = returned.peek()
        if self._without_lost(returned) or first is None:
            entry = self.popleft()  # the first remaining message, maybe from another part
            self.length += 1  # the caller subtracts it again
            self.bytes += len(entry.message.body)
            return entry
        self._pop_returned(first.position)
        return first

    def _without_lost(self, returned: Requeued) -> bool:
        """Subtract messages whose contents were lost while they were paged out; return whether there are any."""
        lost = returned.lost
        self.length -= lost
        self.bytes -= returned.lost_bytes
        returned.lost = returned.lost_bytes = 0
        if not len(returned):
            self._returned = None
        return lost > 0

    def _out_of_the_midst(self, position: int) -> "QueuedMessage | None":
        """Remove and return the message at a position of the head, the kept runs, the paged segments or the tail."""
        part: deque[QueuedMessage] | list[QueuedMessage]
        for part in (self._head, self._tail):
            index = bisect_left(part, position, key=_position)
            if index < len(part) and (entry := part[index]).position == position:
                del part[index]
                return entry
        if self._kept is not None and (kept := self._kept.take_one(position)) is not None:
            return kept
        taken = None if self._paged is None else self._paged.take_one(position)
        return None if taken is None else next(iter(self._paged_in(taken)), None)

    # All messages

    def positions(self) -> Iterator[int]:
        """Iterate over the positions of all messages, in no particular order."""
        yield from (entry.position for entry in self.resident())
        for segment in self.paged():
            yield from segment.positions

    def heads(self) -> "Iterator[QueuedMessage]":
        """Iterate over the oldest message, if there is one."""
        if (head := self.peek()) is not None:
            yield head

    def kept(self) -> "Iterator[QueuedMessage]":
        """Iterate over the messages kept within the memory budget, oldest first."""
        return iter(self._kept or ())

    def paged(self) -> Iterator[PagedSegment]:
        """Iterate over the paged messages, oldest first."""
        if self._returned is not None:
            yield from self._returned.segments()
        yield from self._paged or ()

    def clear(self) -> "tuple[list[QueuedMessage], list[PagedSegment]]":
        """Remove everything; return the entries that were in memory and the paged segments."""
        entries = untracked(sorted(self._returned or (), key=_position))
        entries += self._head
        if self._kept is not None:
            entries += self._kept.clear()
        entries += self._tail
        segments = list(self.paged())
        self._returned, self._kept, self._paged, self.length, self.bytes = None, None, None, 0, 0
        self._tail, self._gathered = untracked([]), 0
        self._head.clear()
        return entries, segments

    def resident(self) -> "Iterator[QueuedMessage]":
        """Iterate over the messages in memory: requeued ones, then the others, oldest first."""
        yield from self._returned or ()
        yield from self._head
        yield from self.kept()
        yield from self._tail

    def _put_away_tail(self, paged: PagedSegments) -> None:
        """Keep the tail in memory if the budget has room and no message before it is paged; else page it out.

        The tail waits for a later turn if this one has reached its limit of moved messages: one message fills the tails
        of all queues of a fanout exchange.
        """
        if not self._paging.may_page_out and not self._is_overdue:
            self._defer_page_out()
        else:
            self._put_away(paged)

    def _put_away(self, paged: PagedSegments) -> None:
        """Put the tail away; it stays as it is if that fails."""
        if not self._keep(paged):
            paged.append(self._paging.page_out(self._tail))
        self._tail, self._gathered = untracked([]), 0

    def _keep(self, paged: PagedSegments) -> bool:
        """Keep the tail in memory, if that is possible; return whether it is."""
        if paged:
            return False
        if self._kept is None:
            self._kept = BufferedRuns(self._reserve)
        if not self._kept.keep(self._tail):
            return False
        self._paging.moved(len(self._tail))
        return True

    def _defer_page_out(self) -> None:
        if self._is_deferred:
            self._paging.wait_for_page_outs()
        else:
            self._is_deferred = True
            self._paging.page_out_later(self._put_away_deferred)

    def _put_away_deferred(self) -> None:
        """Put the tail away, unless its messages have been taken meanwhile."""
        self._is_deferred = False
        if self._paged is not None and self._is_full:
            self._put_away(self._paged)

    @property
    def _is_full(self) -> bool:
        return len(self._tail) >= self._segment_length or self._gathered >= SEGMENT_BYTES

    @property
    def _is_overdue(self) -> bool:
        return (
            len(self._tail) >= _MOST_OVERDUE * self._segment_length or self._gathered >= _MOST_OVERDUE * SEGMENT_BYTES
        )

    def _refill(self) -> None:
        """Bring the next messages into the head: the kept ones first, then the oldest segment, then the tail."""
        assert self._paged is not None
        if self._kept is not None and not self._kept.is_empty:
            self._head.extend(self._kept.popleft())
            return
        while not self._head and self._paged:
            segment = self._paged.pop_first(PAGED_IN if self._paging.may_move else FEW)
            self._head.extend(self._paged_in(segment))
        if not self._head:
            self._head.extend(self._tail)
            self._tail, self._gathered = untracked([]), 0
            if len(self._head) < self._resident:
                self._kept = self._paged = None

    def _paged_in(self, segment: PagedSegment) -> "list[QueuedMessage]":
        """Return the messages of a segment without those that lost their contents."""
        entries = self._paging.page_in(segment)
        if len(entries) < len(segment):
            self.length -= len(segment) - len(entries)
            self.bytes -= sum(segment.body_sizes) - sum(len(entry.message.body) for entry in entries)
        return entries


def _position(entry: "QueuedMessage") -> int:
    return entry.position
