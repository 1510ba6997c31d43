"""The data directory that a migration reads."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from twisted.internet.defer import Deferred

from gateway.cluster.leadership import LEADER_LOG
from gateway.cluster.queue_log import QueueId
from gateway.cluster.replication.local_store import DurableRecord
from gateway.cluster.replication.migration_parts import MigrationParts
from gateway.cluster.replication.stream_ends import StreamEnds
from gateway.kernel.errors import StorageError
from gateway.kernel.journal.changes import Enqueued, Lsn, Put, SetAside, StreamSegment
from gateway.kernel.journal.records.access import UserRecord
from gateway.kernel.journal.records.topology import ParameterRecord
from gateway.node.cluster.local_copy import next_turn
from gateway.node.cluster_id import CLUSTER_ID

#: Records between two turns of the reactor, while the store is opened.
_STEP: Final = 500


class MigrationSource:
    """The store of a single node, which must not run. Owns it. Its records go to ``cells``, as ``parts`` says."""

    def __init__(self, directory: Path, reactor: Any) -> None:  # Any: Twisted's interfaces are not types
        from gateway_lmdb import LmdbStore
        from gateway_lmdb.repair import set_aside_in

        if aside := set_aside_in(directory):
            raise StorageError(f"{len(aside)} records of {directory} are set aside: see gateway repair")
        self.directory = directory
        self.cells: Sequence[QueueId] = (LEADER_LOG,)
        self.parts = MigrationParts(self.cells, {})
        self.store: LmdbStore = LmdbStore(directory, call_in_kernel=reactor.callFromThread)
        self._reactor = reactor
        self._ends = StreamEnds()
        self._durable: Deferred[None] = Deferred()
        self._lsn = Lsn(-1)
        self.name = "without a name"
        self.count = 0
        self.has_users = False
        self.store.listen(self)

    async def open(self, cells: Sequence[QueueId], present: Mapping[str, int]) -> None:
        """Recover the store; ``present`` has the cells of virtual hosts that an earlier attempt placed.

        :raises StorageError: if a record cannot be read.
        """
        self.cells, self.parts = cells, MigrationParts(cells, present)
        highest_id = 0
        for number, found in enumerate(self.store.recover(), 1):
            self.count += 1
            if isinstance(found, Put | Enqueued):
                self.parts.note(found)
            if isinstance(found, Put) and isinstance(found.entity, UserRecord):
                self.has_users = True
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
        self.parts.sort()
        self._lsn = self.store.append(())  # after what the recovery removes
        await self._durable

    def _note(self, parameter: ParameterRecord) -> None:
        if (parameter.vhost, parameter.component, parameter.name) == ("", "", CLUSTER_ID):
            self.name = str(parameter.value)

    def records(self, cell: int) -> Iterator[DurableRecord]:
        """Read everything that belongs to a cell."""
        position, message_id = self.store.highest_ids()
        found = self.store.durable_records(self._ends.ends, message_id, position)
        return found if len(self.cells) == 1 else (record for record in found if self.parts.has(cell, record))

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
