"""A batch: the net effect of several appends, to be written in one transaction.

A message that is stored and removed within the batch costs a dictionary entry and no disk access. Records that may be
on disk are deleted in any case, so a batch knows the highest numbers ever written.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from gateway.kernel.journal.changes import (
    Appended,
    Dequeued,
    Discarded,
    Enqueued,
    Lsn,
    Put,
    Removed,
    SetAside,
    Stored,
)
from gateway.kernel.journal.records.entity import Entity
from gateway.kernel.messages.message import Message, Value
from gateway_lmdb.quarantine import Quarantined, quarantined
from gateway_lmdb.schema import entity_key
from gateway_lmdb.staged import Append
from gateway_lmdb.stream_batch import StreamBatch

#: Limits of one transaction, so that a burst is committed and reported in parts. An append is never split.
MOST_RECORDS: Final = 20_000
MOST_BYTES: Final = 16 * 1024 * 1024

#: The most changes that are handled before other threads may run: compiled code keeps the interpreter's lock.
AT_ONCE: Final = 2048

T = TypeVar("T")


class TableBatch(Generic[T]):
    """The changes to a table of numbered records. ``written`` is the highest number that may be on disk."""

    __slots__ = ("deletes", "puts", "written")

    def __init__(self, written: int) -> None:
        self.written = written
        self.puts: dict[int, T] = {}
        self.deletes: list[int] = []

    def delete(self, number: int) -> T | None:
        """Delete a record; return it if it was not written yet."""
        put = self.puts.pop(number, None)
        if number <= self.written:
            self.deletes.append(number)
        return put

    def merge(self, later: "TableBatch[T]") -> list[T]:
        """Add later changes; return the records that they delete before these were written."""
        dropped = [put for number in later.deletes if (put := self.delete(number)) is not None]
        self.puts.update(later.puts)
        return dropped

    def highest(self) -> int:
        """Return the highest number that may be on disk after this batch."""
        return max(self.written, max(self.puts, default=0))

    def __len__(self) -> int:
        return len(self.puts) + len(self.deletes)


@dataclass(frozen=True, slots=True)
class Written:
    """The highest numbers that may be on disk, by table."""

    content: int
    enqueued: int
    spilled: int


class Batch:
    """Merges appends in order. Owned by the writer thread.

    ``lsn`` is the position of the last append, 0 without one; ``size`` is the size of its bodies in bytes. ``refusals``
    are the reasons for leaving out changes that cannot be written. ``era`` is that of the redo log which begins when
    the batch is in the tables, 0 if it goes on.
    """

    def __init__(self, written: Written) -> None:
        self.lsn = Lsn(0)
        self.era = 0
        self.size = 0
        self.entities: dict[bytes, Put | None] = {}
        self.asides: list[Quarantined] = []
        self.refusals: list[str] = []
        self.contents: TableBatch[Message] = TableBatch(written.content)
        self.spilled: TableBatch[Message] = TableBatch(written.spilled)
        self.enqueued: TableBatch[Enqueued] = TableBatch(written.enqueued)
        self.streams = StreamBatch()

    def __len__(self) -> int:
        messages = len(self.contents) + len(self.spilled) + len(self.enqueued)
        return len(self.entities) + len(self.asides) + messages + len(self.streams)

    @property
    def deletes(self) -> int:
        """The number of message records to delete."""
        return len(self.contents.deletes) + len(self.spilled.deletes) + len(self.enqueued.deletes)

    @property
    def is_full(self) -> bool:
        """Whether the next append belongs to the next transaction."""
        return self.size >= MOST_BYTES or len(self) >= MOST_RECORDS

    def written(self) -> Written:
        """Return the highest numbers that may be on disk after this batch."""
        return Written(self.contents.highest(), self.enqueued.highest(), self.spilled.highest())

    def fold(self, append: Append) -> None:
        """Add an append. The most frequent kinds of change come first, because this loop runs for every message."""
        for change in append.changes:
            if isinstance(change, Enqueued):
                self.enqueued.puts[change.position] = change
            elif isinstance(change, Appended):
                self.streams.add(change)
                self.size += len(change.message.body)
            elif isinstance(change, Dequeued):
                self.enqueued.delete(change.position)
            elif isinstance(change, Stored):
                self._store(change)
            elif isinstance(change, Discarded):
                self._discard(change)
            elif isinstance(change, Put | Removed):
                self._set_entity(change)
            elif isinstance(change, SetAside):
                self.asides.append(quarantined(change))
            elif isinstance(change, Quarantined):
                self.asides.append(change)
            else:
                self.streams.add(change)
        self.lsn = append.lsn or self.lsn

    def merge(self, later: "Batch") -> None:
        """Add the changes of a later batch."""
        self.entities.update(later.entities)
        self.asides += later.asides
        self.refusals += later.refusals
        for message in (*self.contents.merge(later.contents), *self.spilled.merge(later.spilled)):
            self.size -= len(message.body)
        self.enqueued.merge(later.enqueued)
        self.streams.merge(later.streams)
        self.size += later.size
        self.lsn = later.lsn or self.lsn

    def emptying(self) -> Iterator[None]:
        """Return the steps that drop the message records, which takes as long as adding them."""
        for table in (self.contents, self.spilled, self.enqueued):
            while table.puts:
                for _ in range(min(AT_ONCE, len(table.puts))):
                    table.puts.popitem()
                yield

    def _set_entity(self, change: Put | Removed) -> None:
        kind, key = (change.kind, change.key) if isinstance(change, Removed) else _identity(change.entity)
        try:
            self.entities[entity_key(kind, key)] = change if isinstance(change, Put) else None
        except (TypeError, ValueError, RecursionError) as error:  # a safeguard: the kernel validates before it accepts
            self.refusals.append(f"{kind}: {type(error).__name__}: {error}")

    def _store(self, stored: Stored) -> None:
        table = self.spilled if stored.is_spilled else self.contents
        table.puts[stored.message_id] = stored.message
        self.size += len(stored.message.body)

    def _discard(self, discarded: Discarded) -> None:
        table = self.spilled if discarded.is_spilled else self.contents
        message = table.delete(discarded.message_id)
        if message is not None:
            self.size -= len(message.body)


def _identity(entity: Entity) -> tuple[str, tuple[Value, ...]]:
    return entity.kind, entity.key
