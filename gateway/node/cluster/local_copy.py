"""The copy of a cluster's data in the data directory of a node: it grows while the node follows, if it keeps one."""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from twisted.internet.defer import Deferred

from gateway.cluster.errors import ReadingOutdated
from gateway.cluster.leadership import LEADER_LOG
from gateway.cluster.queue_log import UNCLAIMED, Claim, Epoch, QueueId, QueueLogs
from gateway.cluster.replication.log_copy import LogCopy, Rebuilt
from gateway.cluster.replication.standby import Standby
from gateway.kernel.clock import Clock
from gateway.kernel.errors import StorageError
from gateway.logs import StructuredLog
from gateway.management.cluster_state import COPY_BEHIND_BATCHES, COPY_BEHIND_MS
from gateway.node.data_directory import COPY

if TYPE_CHECKING:
    from gateway_lmdb import LmdbStore
    from gateway_lmdb.compaction import CompactionProgress

_log: Final = StructuredLog("cluster")


def next_turn(reactor: Any) -> "Deferred[None]":
    """Return what fires after a turn of the reactor: the lease is renewed between two long parts of a start."""
    fired: Deferred[None] = Deferred()
    reactor.callLater(0, fired.callback, None)
    return fired


@dataclass(frozen=True, slots=True)
class BuiltCopy:
    """A copy that has everything before a claim, opened as after a restart, and what was read."""

    store: "LmdbStore"
    rebuilt: Rebuilt


class LocalCopy:
    """The copy of a ``log`` on one node. Owns its directory, and the standby while the node follows.

    :param keeps_standby: whether the copy grows while the node follows; else it is built at a claim.
    """

    def __init__(
        self,
        data: Path,
        reactor: Any,  # Any: Twisted's interfaces are not types
        clock: Clock,
        logs: QueueLogs,
        keeps_standby: bool,
        log: QueueId = LEADER_LOG,
    ) -> None:
        self._directory = data / COPY
        self._log_id = log
        self._reactor = reactor
        self._clock = clock
        self._logs = logs
        self._is_closed = not keeps_standby
        self._standby = Standby(logs, log, clock, self._new_copy, self)

    def follow(self) -> None:
        """Begin a copy that grows; harmless while there is one. Its directory must not be in use."""
        if not self._is_closed:
            self._standby.start()

    def figures(self) -> Mapping[str, int]:
        """Return how far the copy is behind, for the record of this node; empty while it is not known."""
        lag = self._standby.lag
        if lag is None:
            return {}
        return {COPY_BEHIND_BATCHES: lag.batches, COPY_BEHIND_MS: round(1000 * lag.seconds)}

    @property
    def epoch(self) -> Epoch:
        """The epoch of the log at which the copy that grows has the data; ``UNCLAIMED`` while it cannot be read."""
        copy = self._standby.copy
        return UNCLAIMED if copy is None else copy.epoch

    @property
    def store(self) -> "LmdbStore | None":
        """The store of the copy that grows; ``None`` without one. It is closed at the end of that copy."""
        copy = self._standby.copy
        return None if copy is None else cast("LmdbStore", copy.store)

    def close(self) -> None:
        """Stop, and close the copy that grows."""
        self._is_closed = True
        self._standby.stop()

    async def build(
        self, claim: Claim, check: Callable[[], None], on_compaction: "Callable[[CompactionProgress], None]"
    ) -> BuiltCopy:
        """Read the rest of the log up to a claim into the copy, and open it; ``check`` is called before each batch.

        :raises LogDamaged: if no copy of the log is whole.
        :raises Deposed: if there is a later claim, or ``check`` does.
        :raises Unanswered: if the engine does not answer.
        :raises StorageError: if the copy cannot be written.
        """
        kept = self._standby.hand_over()
        if kept is not None:
            try:
                return await self._finished(kept, claim, check, on_compaction)
            except ReadingOutdated as error:
                _log.warning("the copy that was kept cannot be used", reason=str(error))
        return await self._finished(self._new_copy(lambda reason: None), claim, check, on_compaction)

    async def _finished(
        self,
        copy: LogCopy,
        claim: Claim,
        check: Callable[[], None],
        on_compaction: "Callable[[CompactionProgress], None]",
    ) -> BuiltCopy:
        applier = copy.writer.applier
        before = applier.records, applier.bytes
        try:
            end = await copy.read_rest(self._logs, claim, check)
            written: Deferred[None] = Deferred()
            copy.writer.finish(lambda: written.callback(None))
            await written
            rebuilt = copy.rebuilt(end, *before)
        except BaseException:
            copy.discard()
            raise
        copy.store.close()
        await next_turn(self._reactor)
        return BuiltCopy(self._open(on_compaction, self._clock.call_later), rebuilt)

    def _new_copy(self, failed: Callable[[str], None]) -> LogCopy:
        """Return a copy in an empty store. :raises StorageError: if there cannot be one."""
        shutil.rmtree(self._directory, ignore_errors=True)
        store = self._open(lambda progress: None)  # what writes it folds steps by itself
        for _ in store.recover():
            store.close()
            raise StorageError(f"{self._directory} could not be emptied")
        return LogCopy(self._log_id, store, self._clock, failed)

    def _open(
        self,
        on_compaction: "Callable[[CompactionProgress], None]",
        call_later: Callable[[float, Callable[[], None]], object] | None = None,
    ) -> "LmdbStore":
        from gateway_lmdb import LmdbStore
        from gateway_lmdb.unsynced import UnsyncedDisk

        return LmdbStore(
            self._directory,
            call_in_kernel=self._reactor.callFromThread,
            on_compaction=on_compaction,
            call_later=call_later,
            disk=UnsyncedDisk(),
        )

    # Reports of the standby

    def on_caught_up(self, records: int) -> None:
        """Log it."""
        _log.info("the copy has caught up", records=records)

    def on_interrupted(self, reason: str) -> None:
        """Log it."""
        _log.warning("the copy does not grow for now", reason=reason)
