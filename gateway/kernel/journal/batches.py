"""The batches of staged rows that are committed and not yet published completely.

The record of a batch is its commit: after it, a crash only interrupts the publishing. The position is recorded in the
step of the store that has the messages before it, so publishing continues after a crash at the next message.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gateway.kernel.clock import drained
from gateway.kernel.journal.changes import Put, Removed
from gateway.kernel.journal.records.batches import BatchPositionRecord, BatchRecord

if TYPE_CHECKING:
    from gateway.kernel.journal.journal import Journal


class CommittedBatch:
    """A committed batch and the position up to which it is published."""

    __slots__ = ("position", "record")

    def __init__(self, record: BatchRecord, position: BatchPositionRecord) -> None:
        self.record = record
        self.position = position


class Batches:
    """Owns the batches of one virtual host that are being published, by name."""

    def __init__(self, vhost_name: str, journal: "Journal") -> None:
        self._vhost_name = vhost_name
        self._journal = journal
        self._batch_by_name: dict[str, CommittedBatch] = {}

    def __len__(self) -> int:
        return len(self._batch_by_name)

    def __iter__(self) -> Iterator[CommittedBatch]:
        return iter(self._batch_by_name.values())

    def get(self, name: str) -> CommittedBatch | None:
        """Return a batch; ``None`` if it is not committed, or published completely."""
        return self._batch_by_name.get(name)

    def commit(self, record: BatchRecord) -> CommittedBatch:
        """Record a batch: it is committed once this turn is durable."""
        self._journal.record_large(Put(record), len(record.attempts))
        return self.install(record)

    def advance(self, position: BatchPositionRecord) -> None:
        """Record the position in a batch, in the step of the store that has the messages before it."""
        self._batch_by_name[position.name].position = position
        self._journal.record(Put(position))

    def finish(self, name: str) -> None:
        """Remove a batch, in the same turn as its last messages."""
        batch = self._batch_by_name.pop(name)
        self._journal.record(Removed(batch.record.kind, batch.record.key))
        self._journal.record(Removed(batch.position.kind, batch.position.key))

    def install(self, record: BatchRecord) -> CommittedBatch:
        """Add a batch at its beginning."""
        batch = CommittedBatch(record, BatchPositionRecord(record.vhost, record.name))
        self._batch_by_name[record.name] = batch
        return batch

    def install_position(self, position: BatchPositionRecord) -> None:
        """Set the position of a batch that recovery has found."""
        self._batch_by_name[position.name].position = position

    def erasing(self) -> Iterator[None]:
        """Return the steps that forget all batches, with their virtual host."""
        for name in drained(list(self._batch_by_name)):
            if name in self._batch_by_name:  # else its last slice was published meanwhile
                self.finish(name)
            yield
