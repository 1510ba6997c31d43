"""A checkpoint: what exists is written to the log again, so that older records can be removed.

Steps go on meanwhile, so a piece may be older than a step before it in the log. A replay therefore ignores what a piece
says of anything that a step since the checkpoint's beginning has changed (``replaying.py``).
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final, Protocol

from gateway.cluster.replication.folded_steps import entity_name
from gateway.cluster.replication.local_store import DurableRecord
from gateway.cluster.replication.log_records import CHECKPOINT_BEGIN, CHECKPOINT_END, CHECKPOINT_PIECE
from gateway.cluster.replication.step_codec import StepEncoder
from gateway.kernel.clock import Clock
from gateway.kernel.journal.changes import Appended, Change, Lsn, Put, Stored

if TYPE_CHECKING:
    from gateway.cluster.log_writer import LogWriter
    from gateway.cluster.replication.folded_steps import InLog
    from gateway.cluster.replication.local_store import LocalStore

#: The most records of a piece, and about the most bytes of contents in it.
MOST_RECORDS: Final = 500
MOST_BYTES: Final = 128 * 1024


def read_piece(records: Iterator[DurableRecord]) -> tuple[list[DurableRecord], bool]:
    """Read the records of one piece; return them, and whether they are the last ones."""
    piece: list[DurableRecord] = []
    size = 0
    for record in records:
        piece.append(record)
        size += len(record.message.body) if isinstance(record, Stored | Appended) else 0
        if len(piece) >= MOST_RECORDS or size >= MOST_BYTES:
            return piece, False
    return piece, True


class CheckpointedStore(Protocol):
    """The store of a checkpoint."""

    local: "LocalStore"

    @property
    def local_watermark(self) -> Lsn:
        """The last step that the local copy has written."""
        ...

    @property
    def appended(self) -> Lsn:
        """The last step."""
        ...

    @property
    def stream_ends(self) -> dict[int, int]:
        """The next offset of each stream, after all steps."""
        ...

    @property
    def in_log(self) -> "InLog":
        """The highest position and message id in the log."""
        ...

    def flush(self) -> None:
        """Stage all steps so far in the log."""
        ...


class Checkpoint:
    """One checkpoint in progress. A piece is in flight at a time, so that other records wait little.

    It begins to read once the local copy has written all steps before its mark. It ends however much is published and
    declared: what is newer than the mark is in the log after the mark, so no piece repeats it. ``done`` is called with
    the bytes of its pieces.
    """

    def __init__(
        self, store: CheckpointedStore, writer: "LogWriter", clock: Clock, done: Callable[[int], None]
    ) -> None:
        self._store = store
        self._writer = writer
        self._clock = clock
        self._done = done
        self._encoder = StepEncoder()
        self._records: Iterator[DurableRecord] | None = None
        self._size = 0
        store.flush()
        self._after = store.appended
        self._stream_ends = dict(store.stream_ends)
        self._last = store.in_log  # what is newer is in the log after the mark
        # Nothing before the mark stays: appends to a stream whose beginning is covered would be one with a hole.
        self._mark = self._awaited = writer.append(CHECKPOINT_BEGIN, begins_batch=True)
        self._is_ending = self._is_scheduled = False
        self._changed_entities: set[tuple[str, bytes]] = set()
        clock.call_later(0, lambda: self.on_local_durable(store.local_watermark))

    def on_local_durable(self, watermark: Lsn) -> None:
        """Begin to read, if the local copy has everything before the mark."""
        if self._records is None and watermark >= self._after:
            self._records = self._store.local.durable_records(
                self._stream_ends, self._last.message_id, self._last.position
            )
            self._write_soon()

    def note_entities(self, names: Iterable[tuple[str, bytes]]) -> None:
        """Note the entities of a step after the mark."""
        self._changed_entities.update(names)

    def on_durable(self, index: int) -> None:
        """Continue after a piece."""
        if self._records is None or index < self._awaited:
            return
        if self._is_ending:
            self._done(self._size)
        else:
            self._write_soon()

    def _write_soon(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self._clock.call_later(0, self._write_piece)

    def _write_piece(self) -> None:
        self._is_scheduled = False
        if self._writer.is_closed or self._writer.durable_index < self._awaited or self._is_ending:
            return
        self._store.flush()  # what the copy has is in the log before the piece, so that its removal will be, too
        if changes := self._next_changes():
            piece = CHECKPOINT_PIECE + self._encoder.encode(changes)
            self._size += len(piece)
            self._awaited = self._writer.append(piece)
        if self._is_ending:
            self._awaited = self._writer.append(CHECKPOINT_END, keep_from=self._mark)
        elif not changes:
            self._write_soon()

    def _next_changes(self) -> list[Change]:
        """Read the records of the next piece; there may be none, if all that were read are newer than the mark."""
        assert self._records is not None
        records, self._is_ending = read_piece(self._records)
        return [record for record in records if not self._is_newer(record)]

    def _is_newer(self, record: DurableRecord) -> bool:
        """Whether it is an entity of a step after the mark. Contents and queue entries end with those of the mark."""
        if not self._changed_entities or not isinstance(record, Put):
            return False
        return entity_name(record.entity.kind, record.entity.key) in self._changed_entities
