"""The messages that one action of the workbench removed or made, so that it can be undone."""

import struct
from array import array
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from gateway.kernel.journal.changes import Put, Removed
from gateway.kernel.journal.records.workbench import UndoRecord, UndoRowsRecord
from gateway.kernel.messages.queued_message import QueuedMessage
from gateway.kernel.queueing.queue import Queue

if TYPE_CHECKING:
    from gateway.kernel.journal.journal import Journal

#: Messages that stay in memory; each may take 32 KiB, larger ones are paged out.
_RESIDENT: Final = 64

_ROW: Final = struct.Struct(">QQQQ")


class MovedMessage(NamedTuple):
    """One message of an action, as ``UndoRowsRecord`` has it."""

    source: int
    made: int
    held: int
    due_at_ms: int


class RemovedMessages:
    """One action that can be undone: its ``record``, and the removed messages in a queue of its own.

    Durable messages stay in the store; the others are lost with a restart, as they would have been in their queue.
    """

    def __init__(self, record: UndoRecord, journal: "Journal") -> None:
        self.record = record
        self.held = Queue(
            record.vhost, record.queue, journal, id=record.queue_id, is_durable=True, resident_messages=_RESIDENT
        )
        self.bytes = 0
        self._journal = journal
        self._numbers = array("Q")
        self._unrecorded = array("Q")
        self._records = 0

    def __len__(self) -> int:
        """Return the number of messages."""
        return len(self._numbers) // 4

    def __iter__(self) -> Iterator[MovedMessage]:
        """Iterate over the messages, in the order in which the action reached them."""
        numbers = self._numbers
        return (MovedMessage(*numbers[at : at + 4]) for at in range(0, len(numbers), 4))

    def begin(self) -> None:
        """Record the action."""
        self._journal.record(Put(self.record))

    def hold(self, entry: QueuedMessage) -> None:
        """Keep a message that was removed from its queue, at its position."""
        if entry.is_durable:
            self._journal.requeued(self.record.queue_id, entry)
        self.held.ready.put_back(entry)
        self.bytes += len(entry.message.body)

    def hold_copy(self, entry: QueuedMessage) -> QueuedMessage:
        """Keep a message whose position another one takes; return the kept one, which has a new position."""
        self._journal.position += 1
        kept = QueuedMessage(entry.message, self._journal.position, entry.enqueued_at_ms, entry.is_durable)
        kept.deliveries, kept.is_redelivered = entry.deliveries, entry.is_redelivered
        if kept.is_durable:
            self._journal.enqueued(self.record.queue_id, kept)
        self.held.ready.put_back(kept)
        self.bytes += len(entry.message.body)
        return kept

    def take(self, position: int) -> QueuedMessage | None:
        """Remove and return a kept message; the caller records what becomes of it. ``None`` if it was lost."""
        seen = self.held.ready
        for row in seen.rows():
            if (entry := row.look_at(position)) is not None:
                self.bytes -= len(entry.message.body)
                return seen.take_out(entry)
        return None

    def note(self, moved: MovedMessage) -> None:
        """Add a message; ``flush`` records it."""
        self._numbers.extend(moved)
        self._unrecorded.extend(moved)

    def flush(self) -> None:
        """Record the messages that were added since the last call; call it in the turn that added them."""
        if self._unrecorded:
            rows = b"".join(
                _ROW.pack(*self._unrecorded[at : at + 4]) for at in range(0, len(self._unrecorded), _ROW.size // 8)
            )
            self._journal.record(Put(UndoRowsRecord(self.record.number, self._records, rows)))
            self._records += 1
            self._unrecorded = array("Q")

    # Recovery and end

    def restore(self, record: UndoRowsRecord) -> int:
        """Add messages found by recovery; return the highest of their positions."""
        highest = 0
        for row in _ROW.iter_unpack(record.rows):
            self._numbers.extend(row)
            highest = max(highest, *row[:3])
        self._records = max(self._records, record.number + 1)
        return highest

    def settle(self) -> None:
        """Count the bytes of the messages that recovery found."""
        self.bytes = self.held.ready.bytes

    def forgetting(self) -> Iterator[None]:
        """Return the steps that remove the messages and the records from the store.

        The record of the action goes last, so that a restart after a crash can continue.
        """
        yield from self.held.drops.purge_steps()
        for number in range(self._records):
            self._journal.record(Removed(UndoRowsRecord.kind, (self.record.number, number)))
            yield
        self._journal.record(Removed(UndoRecord.kind, (self.record.number,)))
        self.bytes = 0
        self._numbers = array("Q")
