"""A copy of a log's data in progress: what was read of the log, and what writes it."""

from collections.abc import Callable
from dataclasses import dataclass

from gateway.cluster.errors import ClusterError, ClusterMismatch, LogDamaged
from gateway.cluster.log_replay import LogEnd, LogReading, read_rest
from gateway.cluster.queue_log import Claim, Epoch, QueueId, QueueLogs
from gateway.cluster.replication.copy_writer import CopyWriter
from gateway.cluster.replication.log_growth import LogGrowth
from gateway.kernel.clock import Clock
from gateway.kernel.journal.store import Store


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """A copy that was built: where the log ends, what was applied after the claim, and the growth of the log."""

    end: LogEnd
    records: int
    bytes: int
    growth: LogGrowth


class LogCopy:
    """A copy in an empty store, which grows with what is read of the log. Owns the store until it is handed out."""

    def __init__(self, queue: QueueId, store: Store, clock: Clock, failed: Callable[[str], None]) -> None:
        self.store = store
        self.writer = CopyWriter(store, clock, failed)
        self.reading = LogReading(queue, self.writer.take)

    @property
    def epoch(self) -> Epoch:
        """The epoch of the log at which the store has the data; ``UNCLAIMED`` while it cannot be read."""
        return self.writer.epoch

    async def read_rest(self, logs: QueueLogs, claim: Claim, check: Callable[[], None] = lambda: None) -> LogEnd:
        """Read what is missing up to a claim, for a node that is about to lead. For errors see ``log_replay``."""
        writer = self.writer
        writer.hurry()

        def check_all() -> None:
            check()
            if writer.failure is not None:
                raise ClusterError(f"the copy cannot be written: {writer.failure}")

        return await read_rest(logs, claim, self.reading, writer.gate, check_all)

    def rebuilt(self, end: LogEnd, records: int = 0, size: int = 0) -> Rebuilt:
        """Return what was built, once all is written; ``records`` and ``size`` were applied before the claim.

        :raises LogDamaged: if the log has no complete checkpoint, or a record cannot be read.
        :raises ClusterMismatch: if a migration has not ended.
        """
        applier = self.writer.applier
        if self.writer.failure is not None:
            raise self.writer.failure
        if applier.is_in_migration:
            raise ClusterMismatch("a migration into this cluster has not ended: start gateway migrate again")
        if not applier.is_complete and applier.records:
            raise LogDamaged("the log does not begin with its first record, and has no complete checkpoint")
        return Rebuilt(end, applier.records - records, applier.bytes - size, applier.growth)

    def discard(self) -> None:
        """Close the store of a copy that is not complete."""
        self.writer.close()
        self.store.close()
