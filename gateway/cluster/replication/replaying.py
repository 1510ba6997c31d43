"""Applying the records of a log to a local copy."""

from collections.abc import Callable
from typing import Final

from gateway.cluster.errors import LogDamaged
from gateway.cluster.log_replay import LogRecord
from gateway.cluster.replication.folded_steps import entity_name
from gateway.cluster.replication.log_growth import LogGrowth
from gateway.cluster.replication.log_records import (
    CHECKPOINT_BEGIN,
    CHECKPOINT_END,
    CHECKPOINT_PIECE,
    MIGRATION_BEGIN,
    MIGRATION_END,
    STEP,
)
from gateway.cluster.replication.step_codec import decode_step
from gateway.kernel.journal.changes import (
    EVERYTHING,
    Appended,
    Change,
    Dequeued,
    Discarded,
    Enqueued,
    Put,
    Removed,
    Sealed,
    Stored,
    Truncated,
)

#: The length of the kind at the beginning of a record.
_KIND_BYTES: Final = 1

#: The changes of streams.
StreamChange = Appended | Sealed | Truncated


class RecordApplier:
    """Applies the records of a log, in order, by ``apply``, which takes the changes of one step.

    Between the beginning and the end of a checkpoint it remembers what steps have changed: there the pieces, which may
    be older, do not count. A stream needs its messages in order, so the changes of streams in steps wait for the end of
    the checkpoint, whose pieces have the messages before them; ``finish`` is called after the last record.

    A log that was purged begins with steps just before a checkpoint, which has their effects: they are left out, else a
    stream whose earlier messages come with the checkpoint would begin with theirs.

    Once the copy ``is_complete``, because it has everything since the first record, a whole checkpoint or migration,
    later checkpoints say nothing new, and are counted only.
    """

    def __init__(self, apply: Callable[[list[Change]], object]) -> None:
        self.records = 0
        self.bytes = 0
        self.growth = LogGrowth()
        self.is_complete = False
        self._has_begun = self.is_in_migration = False
        self._apply = apply
        self._pieces_bytes = 0
        self._is_in_checkpoint = False
        self._changed: set[object] = set()
        self._ends: dict[int, int] = {}
        self._postponed: list[Change] = []

    def take(self, record: LogRecord) -> None:
        """Apply a record.

        :raises LogDamaged: if it cannot be read, or if a migration begins anew after records of an earlier one.
        """
        size = len(record.payload)
        if not self.records and record.index == 1:
            self.is_complete = self._has_begun = True
        self.records += 1
        self.bytes += size
        kind = record.payload[:_KIND_BYTES]
        if kind == STEP:
            self.growth.add(size)
            if self._has_begun:
                self._take_step(decode_step(record.payload, _KIND_BYTES))
        elif kind == CHECKPOINT_PIECE:
            self._pieces_bytes += size
            if self._is_in_checkpoint:
                self._take_piece(decode_step(record.payload, _KIND_BYTES))
        elif kind == CHECKPOINT_BEGIN:  # the one before, if it has no end, was that of a leader that died
            self.finish()
            self._has_begun = True
            self._is_in_checkpoint = not self.is_complete
            self._pieces_bytes = 0
        elif kind == CHECKPOINT_END:
            self.is_complete |= self._is_in_checkpoint
            self.finish()
            self.growth.end_checkpoint(self._pieces_bytes)
        elif kind in (MIGRATION_BEGIN, MIGRATION_END):
            self._take_mark(record, kind)
        else:
            raise LogDamaged(f"record {record.index} of the log is of an unknown kind {kind!r}")

    def _take_mark(self, record: LogRecord, kind: bytes) -> None:
        """Begin or end a migration, which is the beginning of a log."""
        if (kind == MIGRATION_BEGIN) is not (self.records == 1) or self.is_in_migration is not (kind == MIGRATION_END):
            raise LogDamaged(f"record {record.index} of the log begins or ends a migration where none may")
        self.is_in_migration = self._is_in_checkpoint = kind == MIGRATION_BEGIN
        self._has_begun = True
        self.is_complete = kind == MIGRATION_END
        if self.is_complete:
            self.growth.end_checkpoint(self._pieces_bytes)

    def finish(self) -> None:
        """Apply what waits for the end of a checkpoint."""
        self._is_in_checkpoint = False
        self._changed.clear()
        postponed, self._postponed = self._postponed, []
        if postponed:
            self._apply_step(postponed)

    def _take_step(self, changes: list[Change]) -> None:
        if self._is_in_checkpoint:
            self._postponed += (change for change in changes if isinstance(change, StreamChange))
            changes = [change for change in changes if not isinstance(change, StreamChange)]
            self._changed.update(map(_identity, changes))
        self._apply_step(changes)

    def _take_piece(self, changes: list[Change]) -> None:
        self._apply_step([change for change in changes if self._is_news(change)])

    def _is_news(self, change: Change) -> bool:
        """Whether the copy lacks what a piece says."""
        if isinstance(change, Appended):
            return change.offset >= self._ends.get(change.stream_id, 0)
        if isinstance(change, Truncated):
            return change.stream_id not in self._ends
        return isinstance(change, Sealed) or _identity(change) not in self._changed

    def _apply_step(self, changes: list[Change]) -> None:
        for change in changes:
            if isinstance(change, Appended):
                self._ends[change.stream_id] = max(change.offset + 1, self._ends.get(change.stream_id, 0))
            elif isinstance(change, Truncated):
                if change.first == EVERYTHING:
                    self._ends.pop(change.stream_id, None)
                else:
                    self._ends[change.stream_id] = max(change.first, self._ends.get(change.stream_id, 0))
        if changes:
            self._apply(changes)


def _identity(change: Change) -> object:
    """Return what a change changes, except one of a stream."""
    if isinstance(change, Enqueued | Dequeued):
        return change.position
    if isinstance(change, Stored | Discarded):
        return ("content", change.message_id)
    if isinstance(change, Put):
        return entity_name(change.entity.kind, change.entity.key)
    if isinstance(change, Removed):
        return entity_name(change.kind, change.key)
    return None
