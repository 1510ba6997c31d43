"""A migration of data directories into an empty cluster, as a process of its own."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from gateway.cluster.cells import VhostPlace, VhostRecords, cell_count
from gateway.cluster.errors import ClusterMismatch, Outdated
from gateway.cluster.leadership import LEADER_LOG, lease_key
from gateway.cluster.leadership.lease import decode_lease
from gateway.cluster.leadership.timing import SILENT_S
from gateway.cluster.log_replay import LogEnd, replay
from gateway.cluster.metadata import Metadata, MetadataEntry
from gateway.cluster.queue_log import UNCLAIMED, Claim, QueueId
from gateway.cluster.replication.migration import LogBeforeMigration, Migration, MigrationProgress
from gateway.config.cluster import Cluster
from gateway.kernel.errors import InternalError
from gateway.net.clock import ReactorClock
from gateway.node.cluster.engine import Engine, open_engine
from gateway.node.cluster.migration_source import MigrationSource

#: The name under which a migration claims the logs.
_NODE: Final = "migration"


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


def run_migration(settings: Cluster, directories: Sequence[Path], say: Callable[[str], None]) -> None:
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
        Deferred.fromCoroutine(migrate_into(settings, directories, running, say)).addBoth(ended)

    running.callWhenRunning(begin)
    running.run()
    if failures:
        raise failures[0]


async def migrate_into(
    settings: Cluster,
    directories: Sequence[Path],
    reactor: Any,  # Any: as above
    say: Callable[[str], None],
) -> None:
    """Write what data directories have into an empty cluster: one is spread over its cells, else each has one.

    :raises GatewayError: if the cluster is not empty, or the data cannot be read completely.
    """
    sources: list[MigrationSource] = []
    try:
        sources += (MigrationSource(directory, reactor) for directory in directories)
        engine = await open_engine(settings, _NODE, reactor, lambda error: say(str(error)))
        try:
            await _migrate(settings, engine, sources, reactor, say)
        finally:
            engine.close()
    finally:
        for source in sources:
            source.close()


async def _migrate(
    settings: Cluster,
    engine: Engine,
    sources: Sequence[MigrationSource],
    reactor: Any,  # Any: as above
    say: Callable[[str], None],
) -> None:
    await _require_no_leader(engine.metadata, reactor)
    count = await cell_count(engine.metadata, settings.cells)
    if len(sources) not in (1, count):
        given = f"{len(sources)} directories are given, and the cluster has {count} cells (cluster.cells)"
        raise ClusterMismatch(f"{given}: give one, or one for each cell")
    vhosts = await _known_vhosts(engine.metadata)
    cells = [QueueId(number) for number in range(LEADER_LOG, LEADER_LOG + count)]
    if len(sources) == 1:
        await sources[0].open(cells, {name: cell for cell in cells for name in vhosts.names_in(cell)})
    else:
        for cell, source in zip(cells, sources, strict=True):
            await source.open([cell], {})
        require_users_first(sources)
    migrations = [CellMigration(engine, source, cell, count, say) for source in sources for cell in source.cells]
    for migration in migrations:
        await migration.open()
    unfinished = [migration for migration in migrations if not migration.is_complete]
    for migration in unfinished or migrations:
        migration.require_free()
    if not unfinished:
        say("the migration was complete already")
        return
    if count > 1:
        await _place(vhosts, sources)
    for source in sources:
        say(f"{source.directory} has about {source.count} records")
    for migration in unfinished:
        migration.begin(reactor)
    for migration in unfinished:
        await migration.end()


def require_users_first(sources: Sequence[MigrationSource]) -> None:
    """Require that the first directory is that of cell 1, which alone has users. :raises ClusterMismatch: if not."""
    first, *others = sources
    for source in others:
        if source.has_users and not first.has_users:
            reason = f"{source.directory} has users, and {first.directory} has none"
            raise ClusterMismatch(f"the first directory must be that of cell 1: {reason}")


class CellMigration:
    """The migration of a source, or of its part, into the log of one of ``count`` cells."""

    def __init__(
        self, engine: Engine, source: MigrationSource, cell: QueueId, count: int, say: Callable[[str], None]
    ) -> None:
        self._logs = engine.logs
        self._source = source
        self._cell = cell
        self._name = source.name if count == 1 else f"{source.name}, cell {cell} of {count}"
        self._say = say if count == 1 else lambda text: say(f"cell {cell}: {text}")
        self._before = LogBeforeMigration()
        self._claim: Claim | None = None
        self._log_end: LogEnd | None = None
        self._migration: Migration | None = None
        self._ended: Deferred[None] = Deferred()

    @property
    def is_complete(self) -> bool:
        """Whether an earlier attempt has written everything."""
        return self._before.is_complete and self._before.source == self._name

    async def open(self) -> None:
        """Claim the log, and read what it has. :raises ClusterMismatch: if a gateway claims it, too."""
        owner = await self._logs.owner(self._cell)
        try:
            claim = await self._logs.claim(self._cell, _NODE, UNCLAIMED if owner is None else owner.epoch)
        except Outdated:
            raise ClusterMismatch("a gateway claims the cluster at this moment: stop all gateways") from None
        self._claim, self._log_end = claim, await replay(self._logs, claim, self._before.take)

    def require_free(self) -> None:
        """Require that the migration may begin or go on. :raises ClusterMismatch: if not."""
        self._before.require_free_for(self._name)

    def begin(self, reactor: Any) -> None:  # Any: as above
        """Begin to write."""
        assert self._claim is not None
        assert self._log_end is not None
        if self._before.pieces:
            self._say(f"an earlier attempt is continued: the log has {len(self._before.pieces)} parts")
        reports = MigrationReports(self._source.count, reactor, self._say)
        self._ended = reports.ended
        self._migration = Migration(
            self._logs,
            ReactorClock(reactor, lambda: None),
            self._claim,
            self._log_end,
            self._before,
            self._name,
            lambda: self._source.records(self._cell),
            reports,
        )
        self._migration.start()

    async def end(self) -> None:
        """Wait until everything is written. :raises ClusterMismatch: if a gateway has claimed the log."""
        assert self._migration is not None
        await self._ended
        progress = self._migration.progress
        self._say(
            f"{progress.records} records, {progress.bytes / 2**20:.1f} MiB, "
            f"{progress.records_before} records of an earlier attempt"
        )


async def _known_vhosts(metadata: Metadata) -> VhostRecords:
    """Return the records of virtual hosts, which an earlier attempt may have written."""
    records = VhostRecords(metadata)
    known: Deferred[None] = Deferred()
    records.start(lambda: known.callback(None))
    await known
    records.close()
    return records


async def _place(vhosts: VhostRecords, sources: Sequence[MigrationSource]) -> None:
    """Write the records of the virtual hosts. :raises ClusterMismatch: if one has another one already."""
    for source in sources:
        for name, cell in source.parts.cell_by_vhost.items():
            place = (await vhosts.make(name, cell)).place
            if place != VhostPlace(cell):
                raise ClusterMismatch(f"vhost '{name}' of {source.directory} is in cell {place.cell} already")


async def _require_no_leader(metadata: Metadata, reactor: Any) -> None:  # Any: as above
    """Require that no gateway leads a cell. :raises ClusterMismatch: if one does."""
    count = await cell_count(metadata, 1)
    keys = [lease_key(QueueId(number)) for number in range(LEADER_LOG, LEADER_LOG + count)]
    before = {key: entry for key in keys if (entry := await metadata.get(key)) is not None and not _is_vacant(entry)}
    if not before:
        return
    waited: Deferred[None] = Deferred()
    reactor.callLater(SILENT_S, waited.callback, None)
    await waited
    for key, entry in before.items():
        after = await metadata.get(key)
        if after is not None and after.revision != entry.revision:
            raise ClusterMismatch("a gateway leads the cluster: a migration needs a new cluster, without gateways")


def _is_vacant(entry: MetadataEntry) -> bool:
    lease = None if entry.value is None else decode_lease(entry.value)
    return lease is not None and lease.is_vacant
