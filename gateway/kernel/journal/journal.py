"""The journal: collects the changes of a turn, hands them to the store as one step, and tracks what is durable.

A *turn* is one iteration of the event loop. All changes of a turn get the same log position, so after a crash either
all of them are there or none. Code that must wait for durability waits for that position.
"""

from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, TypeVar

from gateway.kernel.budget import TurnBudget
from gateway.kernel.deferred_calls import DeferredCalls
from gateway.kernel.journal.changes import (
    MESSAGE,
    Appended,
    Change,
    Dequeued,
    Discarded,
    Enqueued,
    Lsn,
    SetAside,
    Stored,
)
from gateway.kernel.journal.disk_backlog import DiskBacklog, LongWork
from gateway.kernel.journal.open_step import OpenStep
from gateway.kernel.messages.contents import ContentReader
from gateway.kernel.messages.message import Message
from gateway.kernel.messages.paged_segment import DURABLE
from gateway.kernel.messages.stored_message import StoredMessage

if TYPE_CHECKING:
    from pathlib import Path

    from gateway.kernel.clock import Clock
    from gateway.kernel.journal.store import Store
    from gateway.kernel.messages.message import HeaderFormat
    from gateway.kernel.messages.paged_segment import PagedSegment
    from gateway.kernel.messages.queued_message import QueuedMessage

T = TypeVar("T")

#: The approximate memory of a change besides a body, in bytes. Without it a million small messages that expire at once
#: would fill the memory and block the reactor for half a second, as the disk would be that far behind.
CHANGE_SIZE: Final = 256

#: Contents of a step whose index is freed at once.
_MANY_CONTENTS: Final = 1024


class Journal:
    """Owns the counters of positions and message ids, the changes of the turn, and the callbacks waiting for the disk.

    ``position`` is the last position given to a message: all queues share the counter, and so one order.
    ``formats`` decodes the headers of stored messages by format name; ``reader`` decodes whole messages.
    ``indirect_lsn`` is the log position of the last turn that stored something for a publish other than its message: a
    dead letter, a message in a stream, a trace event. ``confirm_lsn`` is the last one that a confirm waits for, or has
    waited for. ``turn_ms`` is the cached ``now_ms`` of this turn, or 0.
    ``budget`` is the rest of the turn's time. ``turn_position`` is ``position`` at the start of the turn; ``moved``
    counts the messages paged out or in during the turn, ``lettered`` the offers of dead letters to queues. ``deferred``
    runs calls in later turns. ``disk_backlog`` has what waits for the disk. ``on_fault`` is called with exceptions of
    callbacks. ``entered_step`` is the step that changes are recorded in now, ``None`` for the turn.
    """

    def __init__(self, store: "Store", clock: "Clock", formats: "Mapping[str, HeaderFormat]") -> None:
        self._store = store
        self.clock = clock
        self.budget = TurnBudget(clock.monotonic_s)
        self.deferred = DeferredCalls(clock.background, self.budget)
        clock.background.after_slice = self.budget.take_pending  # no connection has to wait for work of a job
        self._wall_ms: Callable[[], int] = clock.wall_ms
        self.formats = formats
        self.reader = ContentReader(formats)
        self._changes: list[Change] = []
        self.position, self._message_id = store.highest_ids()
        self._flushed_id = self._message_id
        self._sharers: dict[int, int] = {}
        self._waiting: deque[tuple[int, Callable[[], None]]] = deque()
        self._end_of_turn_calls: list[Callable[[], None]] = []
        self._after_turn_calls: list[Callable[[], None]] = []
        self._open_steps: list[OpenStep] = []
        self.entered_step: OpenStep | None = None
        self.turn_ms = 0
        self.turn_position = self.position
        self.moved = 0
        self.lettered = 0
        self._turn_bytes = 0
        self._gathered = 0  # changes of this turn that do not count as backlog
        self.disk_backlog = DiskBacklog()
        self._long_work = LongWork(self.disk_backlog)
        self.has_failed = False
        self.on_fault: Callable[[Exception], None] | None = None
        self.on_set_aside: Callable[[SetAside], None] = lambda aside: None
        self.indirect_lsn = Lsn(0)
        self.confirm_lsn = Lsn(0)
        self.lsn = Lsn(1)
        self.watermark = Lsn(0)

    def store_indirectly(self) -> None:
        """Note that this turn stores something for a publish other than its message: its confirm waits for it."""
        self.indirect_lsn = self.lsn

    def delaying_no_confirm(self, work: "Callable[[], T]") -> "T":
        """Call ``work``; what it stores indirectly delays no confirm, because no publish of this turn caused it."""
        indirect_lsn = self.indirect_lsn
        try:
            return work()
        finally:
            self.indirect_lsn = indirect_lsn

    def record(self, change: Change) -> None:
        """Add a change to this turn."""
        self._changes.append(change)

    def record_large(self, change: Change, size: int) -> None:
        """Add a change that takes about ``size`` bytes in the store to this turn."""
        self._turn_bytes += size
        self._changes.append(change)

    # Messages in durable queues

    def enqueued(self, queue_id: int, entry: "QueuedMessage", due_at_ms: int = 0) -> None:
        """Record that a durable queue took a message; its content is stored with the first such record.

        ``due_at_ms`` is the end of its delay, which a restart observes too.
        """
        message = entry.message
        if message.id:
            self._sharers[message.id] = self._sharers.get(message.id, 1) + 1
        else:
            self._message_id += 1
            message.id = self._message_id
            self._turn_bytes += len(message.body)
            self._changes.append(Stored(message))
        self._enter(queue_id, entry, due_at_ms)

    def enqueued_run(self, queue_id: int, entries: "list[QueuedMessage]") -> None:
        """Record that a durable queue took new messages, which do not expire and are in no other queue.

        They belong to no open step, because no step is entered. A fault records none of them.
        """
        assert self.entered_step is None
        changes: list[Change] = []
        message_id, run_bytes = self._message_id, 0
        for entry in entries:
            message = entry.message
            size, message_id = len(message.body), message_id + 1
            message.id = message_id
            run_bytes += size
            changes.append(Stored(message))
            changes.append(
                Enqueued(queue_id, entry.position, message_id, entry.enqueued_at_ms, 0, size, message.header.priority)
            )
        self._changes += changes
        self._message_id = message_id
        self._turn_bytes += run_bytes

    def requeued(self, queue_id: int, entry: "QueuedMessage", due_at_ms: int = 0) -> None:
        """Record that a message was requeued in a durable queue, so that its delivery count survives.

        ``due_at_ms`` is as in ``enqueued``.
        """
        self._enter(queue_id, entry, due_at_ms)

    def _enter(self, queue_id: int, entry: "QueuedMessage", due_at_ms: int = 0) -> None:
        message = entry.message
        header = message.header
        expiration_ms = header.expiration_ms
        changes = self._changes_of(message.id) if self._open_steps else self._changes
        changes.append(
            Enqueued(
                queue_id,
                entry.position,
                message.id,
                entry.enqueued_at_ms,
                entry.deliveries,
                len(message.body),
                header.priority,
                due_at_ms,
                0 if expiration_ms is None else entry.enqueued_at_ms + expiration_ms,
            )
        )

    def dequeued(self, position: int, message: Message) -> None:
        """Record that a durable queue removed a message; the last removal discards its content."""
        if self._released(position, message.id):
            message.id = 0

    def dequeued_segment(self, segment: "PagedSegment") -> None:
        """Record that a durable queue removed a whole segment; spilled contents are discarded too."""
        for position, content_id, flags in zip(segment.positions, segment.content_ids, segment.flags, strict=True):
            if flags & DURABLE:
                self._released(position, content_id)
            else:
                self.unspilled(content_id)

    def replaced(self, queue_id: int, entry: "QueuedMessage", former: Message, due_at_ms: int = 0) -> None:
        """Record that an entry with another message took the position of ``former`` in a durable queue."""
        self.enqueued(queue_id, entry, due_at_ms)
        if self._forsaken(former.id, self._changes_of(former.id) if self._open_steps else self._changes):
            former.id = 0

    def _released(self, position: int, message_id: int) -> bool:
        changes = self._changes_of(message_id) if self._open_steps else self._changes
        changes.append(Dequeued(position))
        return self._forsaken(message_id, changes)

    def _forsaken(self, message_id: int, changes: list[Change]) -> bool:
        """Count one queue less that holds a content; return whether it was the last, and the content is discarded."""
        sharers = self._sharers.get(message_id)
        if sharers is None:
            changes.append(Discarded(message_id))
            return True
        if sharers > 2:
            self._sharers[message_id] = sharers - 1
        else:
            del self._sharers[message_id]
        return False

    def shared(self, message_id: int) -> None:
        """Count one more durable queue that holds the message; recovery calls this for each one after the first."""
        self._sharers[message_id] = self._sharers.get(message_id, 1) + 1

    # Contents paged out while their message waits

    def spilled(self, message: Message) -> int:
        """Store content that need not survive a restart; return its id for reading it back."""
        self._message_id += 1
        copy = message.with_routing_key(message.routing_key)
        copy.id = self._message_id
        self._turn_bytes += len(message.body)
        self._changes.append(Stored(copy, is_spilled=True))
        return copy.id

    def unspilled(self, message_id: int) -> None:
        """Record that spilled content is no longer needed."""
        self._changes.append(Discarded(message_id, is_spilled=True))

    def contents(self, message_ids: list[int]) -> "list[StoredMessage | None]":
        """Return stored contents, including those of the current turn."""
        found = self._store.messages(message_ids)
        if max(message_ids, default=0) > self._flushed_id:
            fresh = {change.message_id: change.message for change in self._changes if isinstance(change, Stored)}
            for index, message_id in enumerate(message_ids):
                if message_id in fresh:
                    found[index] = _as_stored(fresh[message_id])
        for step in self._open_steps:
            for index, message_id in enumerate(message_ids):
                if message_id in step.contents:
                    found[index] = _as_stored(step.contents[message_id])
        return found

    def set_aside(self, message_id: int, reason: str) -> None:
        """Record that a stored content cannot be used: the store quarantines it."""
        aside = SetAside(MESSAGE, (message_id,), reason)
        self._changes.append(aside)
        self.on_set_aside(aside)

    def lost(self, position: int) -> None:
        """Record that a message's content is missing: its position is removed too."""
        self._changes.append(Dequeued(position))

    # Messages in streams

    def appended(self, change: Appended, size: int) -> None:
        """Record that a stream took a message, which takes about ``size`` bytes in the store.

        Sets ``indirect_lsn``, because confirms cannot tell from the message that it was stored: it has no id.
        """
        self.store_indirectly()
        self._turn_bytes += size
        self._changes.append(change)

    def appended_run(self, changes: "list[Appended]", size: int) -> None:
        """Record that a stream took several messages, as ``appended`` does."""
        self.store_indirectly()
        self._turn_bytes += size
        self._changes += changes

    def stream_chunks(self, stream_id: int, offset: int, most_bytes: int) -> bytes | None:
        """Read durable messages of a stream, as ``Store.stream_chunks`` does."""
        return self._store.stream_chunks(stream_id, offset, most_bytes)

    def segment_path(self, stream_id: int, first: int) -> "Path | None":
        """Return the file of a sealed segment, or ``None``."""
        return self._store.segment_path(stream_id, first)

    # Steps that span several turns

    @property
    def has_open_steps(self) -> bool:
        """Whether a step is open."""
        return bool(self._open_steps)

    def is_shared(self, message_id: int) -> bool:
        """Whether changes to a message belong to an open step, though others that are recorded now do not."""
        return any(message_id in step.message_ids for step in self._open_steps if step is not self.entered_step)

    def open_step(self) -> OpenStep:
        """Begin a step that spans several turns; ``enter`` it for each part."""
        step = OpenStep()
        self._open_steps.append(step)
        return step

    def enter(self, step: OpenStep) -> None:
        """Record changes in a step until ``leave``; the turn must not end in between."""
        self.entered_step = step
        self._changes, step.changes = step.changes, self._changes
        self._turn_bytes, step.size = step.size, self._turn_bytes

    def leave(self) -> None:
        """Record changes in the turn again."""
        step, self.entered_step = self.entered_step, None
        assert step is not None
        self._changes, step.changes = step.changes, self._changes
        self._turn_bytes, step.size = step.size, self._turn_bytes
        step.note_contents()

    def close_step(self, step: OpenStep) -> None:
        """Make all changes of a step part of this turn, then append its messages for streams and archives.

        The changes do not count as backlog: the size of one client's step is limited already, and the backlog would
        block all publishers until it is written.
        """
        self._open_steps.remove(step)
        step.is_open = False
        changes, step.changes = step.changes, []
        self._gathered += len(changes)
        changes[:0] = self._changes  # a copy of 200,000 changes to the list of the turn takes 6 ms
        self._changes = changes
        appends, step.appends = step.appends, {}
        for append in appends.values():
            self.contain(append.append)
        if len(step.contents) > _MANY_CONTENTS:
            self.clock.background.add_later(step.freeing())

    def _changes_of(self, message_id: int) -> list[Change]:
        """Return the list that a change to a message belongs to while steps are open."""
        if self.entered_step is not None and not any(message_id in step.message_ids for step in self._open_steps):
            self.entered_step.message_ids.add(message_id)
        for step in self._open_steps:
            if message_id in step.message_ids:
                return self._changes if step is self.entered_step else step.changes
        return self._changes

    # Turns and the watermark

    @property
    def now_ms(self) -> int:
        """Wall time in milliseconds, read once a turn."""
        if not self.turn_ms:
            self.turn_ms = self._wall_ms()
        return self.turn_ms

    def at_end_of_turn(self, call: Callable[[], None]) -> None:
        """Call once before this turn's changes go to the store; what the call records is part of the turn."""
        self._end_of_turn_calls.append(call)

    def after_turn(self, call: Callable[[], None]) -> None:
        """Call once after this turn's changes went to the store."""
        self._after_turn_calls.append(call)

    def _run_end_of_turn_calls(self) -> None:
        calls, self._end_of_turn_calls = self._end_of_turn_calls, []
        for call in calls:
            self.contain(call)

    def contain(self, call: Callable[[], None]) -> None:
        """Run a callback; an exception must not prevent the others."""
        try:
            call()
        except Exception as error:  # a fault in one callback must not stop the turn or the other callbacks
            if self.on_fault is None:
                raise
            self.on_fault(error)

    @property
    def has_begun(self) -> bool:
        """Whether this turn has work for ``flush``."""
        return bool(self._changes) or self.turn_ms != 0 or bool(self._end_of_turn_calls) or bool(self._after_turn_calls)

    def flush(self) -> None:
        """End the turn: hand all its changes to the store as one step, then send the confirms that need no disk."""
        if self._end_of_turn_calls:
            self._run_end_of_turn_calls()
        self.turn_ms = 0
        self.turn_position, self.moved, self.lettered = self.position, 0, 0
        if self._changes:
            self._append()
        if self._after_turn_calls:
            calls, self._after_turn_calls = self._after_turn_calls, []
            for call in calls:
                self.contain(call)

    def _append(self) -> None:
        changes, self._changes = self._changes, []
        self._flushed_id = self._message_id
        lsn = self._store.append(changes)
        self.lsn = Lsn(lsn + 1)
        size = self._turn_bytes + (len(changes) - self._gathered) * CHANGE_SIZE
        self._turn_bytes = self._gathered = 0
        self.disk_backlog.add(lsn, size)

    @property
    def backlog_bytes(self) -> int:
        """The size of the changes that wait for the store, in bytes."""
        return self.disk_backlog.size

    def delays_long_work(self) -> bool:
        """Return whether so much waits for the disk that long work has to; call it before each slice."""
        return self._long_work.has_to_wait(self.lsn, self.watermark)

    @property
    def pending_lsn(self) -> Lsn:
        """The log position at which everything recorded so far will be durable."""
        return self.lsn if self._changes else Lsn(self.lsn - 1)

    def when_durable(self, lsn: int, answer: Callable[[], None]) -> None:
        """Call ``answer`` once everything up to ``lsn`` is durable; at once if it already is."""
        if lsn <= self.watermark:
            answer()
        else:
            self._waiting.append((lsn, answer))

    def on_durable(self, watermark: Lsn) -> None:
        """Called by the store when everything up to ``watermark`` is durable: runs the callbacks that waited for it.

        Callbacks are queued in rising order of positions, since none waits for an earlier turn than the current one.
        """
        self.watermark = watermark
        self.disk_backlog.remove_up_to(watermark)
        waiting = self._waiting
        while waiting and waiting[0][0] <= watermark:
            self.contain(waiting.popleft()[1])


def _as_stored(message: Message) -> StoredMessage:
    header = message.header
    return StoredMessage(message.exchange, message.routing_key, header.format.name, header.stored_raw, message.body)
