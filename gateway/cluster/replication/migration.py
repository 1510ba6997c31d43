"""A migration: what a single node has is written into the log of an empty cluster.

The log then begins with a mark, has the pieces of a checkpoint, and ends with another mark. Without the last one no
node leads. A migration that was killed is started again: what the log has already is compared with the source, piece by
piece, and left out. If the source has changed meanwhile, a new mark covers everything before it.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Protocol
from zlib import crc32

from gateway.cluster.errors import ClusterMismatch
from gateway.cluster.log_replay import LogEnd, LogRecord
from gateway.cluster.log_writer import LogWriter
from gateway.cluster.queue_log import Claim, QueueLogs
from gateway.cluster.replication.checkpoint import read_piece
from gateway.cluster.replication.local_store import DurableRecord
from gateway.cluster.replication.log_records import CHECKPOINT_PIECE, MIGRATION_BEGIN, MIGRATION_END
from gateway.cluster.replication.step_codec import StepEncoder
from gateway.kernel.clock import Clock

#: So many pieces wait for the log at most.
_AHEAD: Final = 8

#: A piece in the log: its checksum and size.
Fingerprint = tuple[int, int]


class LogBeforeMigration:
    """The content of a log: nothing, a migration or a part of it, or the data of a cluster.

    ``source`` names the broker whose migration was begun; ``None`` if there is none.
    """

    def __init__(self) -> None:
        self.source: str | None = None
        self.pieces: list[Fingerprint] = []
        self.is_complete = False
        self.is_used = False

    def take(self, record: LogRecord) -> None:
        """Note a record."""
        payload = record.payload
        kind = payload[:1]
        if kind == MIGRATION_BEGIN and not self.is_used and not self.is_complete:
            self.source = payload[1:].decode("utf-8", "replace")
            self.pieces.clear()
        elif kind == CHECKPOINT_PIECE and self.source is not None and not self.is_complete:
            self.pieces.append(_fingerprint(payload))
        elif kind == MIGRATION_END and self.source is not None and not self.is_complete:
            self.is_complete = True
        else:
            self.is_used = True

    def require_free_for(self, source: str) -> None:
        """Require that the migration of a broker may begin or go on. :raises ClusterMismatch: if not."""
        if self.is_used:
            raise ClusterMismatch("the cluster is not empty: it has been used; a migration needs a new cluster")
        if self.source is not None and self.source != source:
            state = "was made" if self.is_complete else "has begun"
            raise ClusterMismatch(
                f"a migration of another broker ({self.source}) into this cluster {state}; this one is {source}"
            )


@dataclass(slots=True)
class MigrationProgress:
    """The records and bytes that are in the log, and those of them that were there before."""

    records: int = 0
    bytes: int = 0
    records_before: int = 0


class MigrationListener(Protocol):
    """Gets reports about a migration."""

    def on_progress(self, progress: MigrationProgress) -> None:
        """Note that another piece was read."""
        ...

    def on_done(self) -> None:
        """Note that everything is in the log."""
        ...

    def on_failed(self, reason: str) -> None:
        """Note that the log is owned by another node."""
        ...

    def on_waiting(self, reason: str) -> None:
        """Note that the engine does not answer; the migration goes on when it does."""
        ...


class Migration:
    """One attempt of a migration under one claim. ``read`` begins to read the records of the source."""

    def __init__(
        self,
        logs: QueueLogs,
        clock: Clock,
        claim: Claim,
        end: LogEnd,
        before: LogBeforeMigration,
        source: str,
        read: Callable[[], Iterable[DurableRecord]],
        listener: MigrationListener,
    ) -> None:
        self.progress = MigrationProgress()
        self._writer = LogWriter(logs, clock, claim, end, self)
        self._clock = clock
        self._next_index = end.next_index
        self._source = source
        self._read = read
        self._listener = listener
        self._encoder = StepEncoder()
        self._records: Iterator[DurableRecord] = iter(())
        self._expected: Iterator[Fingerprint] | None = iter(before.pieces) if before.source == source else None
        self._last: int | None = None
        self._is_waiting = False

    def start(self) -> None:
        """Begin, or go on."""
        self._records = iter(self._read())
        if self._expected is None:
            self._begin()
        self._clock.call_later(0, self._step)

    def close(self) -> None:
        """Stop."""
        self._writer.close()

    def _begin(self) -> None:
        """Write the mark, which covers everything before it."""
        self._expected = None
        payload = MIGRATION_BEGIN + self._source.encode()
        self._next_index = self._writer.append(payload, keep_from=self._next_index, begins_batch=True) + 1

    def _step(self) -> None:
        """Write a piece, unless the log has it."""
        if self._writer.is_closed or self._last is not None:
            return
        changes, _ = read_piece(self._records)
        payload = CHECKPOINT_PIECE + self._encoder.encode(changes) if changes else b""
        if self._expected is not None and not self._is_expected(payload):
            return
        self.progress.records += len(changes)
        self.progress.bytes += len(payload)
        if self._expected is not None:
            self.progress.records_before = self.progress.records
        elif changes:
            self._next_index = self._writer.append(payload) + 1
        else:
            self._last = self._writer.append(MIGRATION_END)
        self._listener.on_progress(self.progress)
        self._step_later()

    def _is_expected(self, payload: bytes) -> bool:
        """Compare a piece with the log. Begin again if it is another one; go on with writing after the last one."""
        assert self._expected is not None
        expected = next(self._expected, None)
        if expected is None:
            self._expected = None
            return True
        if payload and _fingerprint(payload) == expected:
            return True
        self.progress = MigrationProgress()  # the source has changed
        self._begin()
        self._records = iter(self._read())
        self._step_later()
        return False

    def _step_later(self) -> None:
        if self._last is not None:
            return
        self._is_waiting = self._next_index - self._writer.durable_index > _AHEAD
        if not self._is_waiting:
            self._clock.call_later(0, self._step)

    # Reports of the log

    def on_durable(self, index: int) -> None:
        """Go on after pieces that are stored, or end."""
        if self._last is not None:
            if index >= self._last:
                self._listener.on_done()
        elif self._is_waiting:
            self._step_later()

    def on_deposed(self, reason: str) -> None:
        """Fail."""
        self._listener.on_failed(reason)

    def on_stalled(self, reason: str) -> None:
        """Report that it waits for the engine."""
        self._listener.on_waiting(reason)

    def on_resumed(self) -> None:
        """Do nothing: the progress goes on."""


def _fingerprint(payload: bytes) -> Fingerprint:
    return crc32(payload), len(payload)
