"""A migration of the data directory of a single node into an empty cluster, as a process of its own."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from gateway.cluster.errors import ClusterMismatch, Outdated
from gateway.cluster.leadership import LEADER_LOG, LEASE_KEY
from gateway.cluster.leadership.lease import decode_lease
from gateway.cluster.leadership.timing import SILENT_S
from gateway.cluster.log_replay import replay
from gateway.cluster.metadata import Metadata
from gateway.cluster.queue_log import UNCLAIMED
from gateway.cluster.replication.local_store import DurableRecord
from gateway.cluster.replication.migration import LogBeforeMigration, Migration, MigrationProgress
from gateway.cluster.replication.stream_ends import StreamEnds
from gateway.config.cluster import Cluster
from gateway.kernel.errors import InternalError, StorageError
from gateway.kernel.journal.changes import Enqueued, Lsn, Put, SetAside, StreamSegment
from gateway.kernel.journal.records.topology import ParameterRecord
from gateway.net.clock import ReactorClock
from gateway.node.cluster.engine import open_engine
from gateway.node.cluster.local_copy import next_turn
from gateway.node.cluster_id import CLUSTER_ID

#: The name under which a migration claims the log.
_NODE: Final = "migration"

#: Records between two turns of the reactor, while the store is opened.
_STEP: Final = 500


class MigrationSource:
    """The store of a single node, which must not run. Owns it."""

    def __init__(self, directory: Path, reactor: Any) -> None:  # Any: Twisted's interfaces are not types
        from gateway_lmdb import LmdbStore
        from gateway_lmdb.repair import set_aside_in

        if aside := set_aside_in(directory):
            raise StorageError(f"{len(aside)} records of {directory} are set aside: see gateway repair")
        self.store: LmdbStore = LmdbStore(directory, call_in_kernel=reactor.callFromThread)
        self._reactor = reactor
        self._ends = StreamEnds()
        self._durable: Deferred[None] = Deferred()
        self._lsn = Lsn(-1)
        self.name = "without a name"
        self.count = 0
        self.store.listen(self)

    async def open(self) -> None:
        """Recover the store. :raises StorageError: if a record cannot be read."""
        highest_id = 0
        for number, found in enumerate(self.store.recover(), 1):
            self.count += 1
            if isinstance(found, SetAside):
                raise StorageError(f"a record cannot be read, and was set aside: {found.reason}; see gateway repair")
            if isinstance(found, StreamSegment):
                self._ends.found(found)
                self.count += found.end - found.first
            elif isinstance(found, Put) and isinstance(found.entity, ParameterRecord):
                self._note(found.entity)
            elif isinstance(found, Enqueued) and found.message_id > highest_id:  # about the number of contents
                highest_id = found.message_id
                self.count += 1
            if number % _STEP == 0:
                await next_turn(self._reactor)
        self._lsn = self.store.append(())  # after what the recovery removes
        await self._durable

    def _note(self, parameter: ParameterRecord) -> None:
        if (parameter.vhost, parameter.component, parameter.name) == ("", "", CLUSTER_ID):
            self.name = str(parameter.value)

    def records(self) -> Iterator[DurableRecord]:
        """Read everything."""
        position, message_id = self.store.highest_ids()
        return self.store.durable_records(self._ends.ends, message_id, position)

    def close(self) -> None:
        """Close the store."""
        self.store.close()

    def on_durable(self, watermark: Lsn) -> None:
        """Note that what the recovery removes is written."""
        if watermark >= self._lsn >= 0 and not self._durable.called:
            self._durable.callback(None)

    def on_refused(self, reason: str) -> None:
        """Fail."""
        self.on_failed(reason)

    def on_set_aside(self, aside: SetAside) -> None:
        """Fail."""
        self.on_failed(f"a record was set aside: {aside.reason}")

    def on_stalled(self, reason: str) -> None:
        """Fail."""
        self.on_failed(reason)

    def on_resumed(self) -> None:
        """Do nothing."""

    def on_failed(self, reason: str) -> None:
        """Fail."""
        if not self._durable.called:
            self._durable.errback(StorageError(reason))


class MigrationReports:
    """The listener of a migration: lines of text, and the end."""

    def __init__(self, count: int, reactor: Any, say: Callable[[str], None]) -> None:  # Any: as above
        self.ended: Deferred[None] = Deferred()
        self._count = count
        self._reactor = reactor
        self._say = say
        self._said_s = reactor.seconds()

    def on_progress(self, progress: MigrationProgress) -> None:
        """Print a line each second."""
        if self._reactor.seconds() - self._said_s >= 1:
            self._said_s = self._reactor.seconds()
            self._say(f"{progress.records} of about {self._count} records, {progress.bytes / 2**20:.1f} MiB")

    def on_done(self) -> None:
        """End."""
        self.ended.callback(None)

    def on_failed(self, reason: str) -> None:
        """Fail: a gateway has started."""
        text = f"a gateway has claimed the cluster: stop all gateways, and start the migration again ({reason})"
        self.ended.errback(ClusterMismatch(text))

    def on_waiting(self, reason: str) -> None:
        """Print why nothing goes on."""
        self._say(f"waiting for the NATS servers: {reason}")


def run_migration(settings: Cluster, directory: Path, say: Callable[[str], None]) -> None:
    """Run a migration on a reactor of its own. :raises GatewayError: if it fails."""
    from twisted.internet import reactor

    running: Any = reactor  # Twisted's interfaces are not types
    failures: list[BaseException] = [InternalError("the migration was interrupted; start it again")]

    def ended(outcome: object) -> None:
        failures.clear()
        if isinstance(outcome, Failure) and outcome.value is not None:
            failures.append(outcome.value)
        running.callLater(0, running.stop)

    def begin() -> None:
        Deferred.fromCoroutine(migrate_into(settings, directory, running, say)).addBoth(ended)

    running.callWhenRunning(begin)
    running.run()
    if failures:
        raise failures[0]


async def migrate_into(
    settings: Cluster,
    directory: Path,
    reactor: Any,  # Any: as above
    say: Callable[[str], None],
) -> None:
    """Write what a data directory has into an empty cluster.

    :raises GatewayError: if the cluster is not empty, or the data cannot be read completely.
    """
    source = MigrationSource(directory, reactor)
    try:
        await source.open()
        engine = await open_engine(settings, _NODE, reactor, lambda error: say(str(error)))
        try:
            await _require_no_leader(engine.metadata, reactor)
            owner = await engine.logs.owner(LEADER_LOG)
            try:
                claim = await engine.logs.claim(LEADER_LOG, _NODE, UNCLAIMED if owner is None else owner.epoch)
            except Outdated:
                raise ClusterMismatch("a gateway claims the cluster at this moment: stop all gateways") from None
            before = LogBeforeMigration()
            end = await replay(engine.logs, claim, before.take)
            before.require_free_for(source.name)
            if before.is_complete:
                say("the migration was complete already")
                return
            say(f"{directory} has about {source.count} records")
            if before.pieces:
                say(f"an earlier attempt is continued: the log has {len(before.pieces)} parts")
            reports = MigrationReports(source.count, reactor, say)
            clock = ReactorClock(reactor, lambda: None)
            migration = Migration(engine.logs, clock, claim, end, before, source.name, source.records, reports)
            migration.start()
            await reports.ended
            progress = migration.progress
            say(
                f"{progress.records} records, {progress.bytes / 2**20:.1f} MiB, "
                f"{progress.records_before} records of an earlier attempt"
            )
        finally:
            engine.close()
    finally:
        source.close()


async def _require_no_leader(metadata: Metadata, reactor: Any) -> None:  # Any: as above
    """Require that no gateway leads the cluster. :raises ClusterMismatch: if one does."""
    before = await metadata.get(LEASE_KEY)
    lease = None if before is None or before.value is None else decode_lease(before.value)
    if before is None or (lease is not None and lease.is_vacant):
        return
    waited: Deferred[None] = Deferred()
    reactor.callLater(SILENT_S, waited.callback, None)
    await waited
    after = await metadata.get(LEASE_KEY)
    if after is not None and after.revision != before.revision:
        raise ClusterMismatch("a gateway leads the cluster: a migration needs a new cluster, without gateways")
