"""The copy of a cluster's data in the data directory of its leader, built from the log."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from twisted.internet.defer import Deferred

from gateway.kernel.errors import StorageError
from gateway.kernel.journal.changes import Change, Lsn, SetAside

if TYPE_CHECKING:
    from gateway_lmdb import LmdbStore
    from gateway_lmdb.compaction import CompactionProgress

#: The directory in the data directory.
COPY: Final = "cluster-copy"


def next_turn(reactor: Any) -> "Deferred[None]":
    """Return what fires after a turn of the reactor: the lease is renewed between two long parts of a start."""
    fired: Deferred[None] = Deferred()
    reactor.callLater(0, fired.callback, None)
    return fired


class CopyBuilder:
    """Writes the changes of a log into an empty store in a directory."""

    def __init__(self, data: Path, reactor: Any) -> None:  # Any: Twisted's interfaces are not types
        self._directory = data / COPY
        self._reactor = reactor
        self._appended = self._durable = Lsn(0)
        self._waiting: Deferred[None] | None = None
        self._failure = ""
        shutil.rmtree(self._directory, ignore_errors=True)
        self._store = self._open(lambda progress: None)
        self._store.listen(self)
        for _ in self._store.recover():
            raise StorageError(f"{self._directory} could not be emptied")

    def _open(self, on_compaction: "Callable[[CompactionProgress], None]") -> "LmdbStore":
        from gateway_lmdb import LmdbStore
        from gateway_lmdb.unsynced import UnsyncedDisk

        return LmdbStore(
            self._directory,
            call_in_kernel=self._reactor.callFromThread,
            on_compaction=on_compaction,
            disk=UnsyncedDisk(),
        )

    def apply(self, changes: list[Change]) -> None:
        """Write one step."""
        self._appended = self._store.append(changes)

    async def finished(self, on_compaction: "Callable[[CompactionProgress], None]") -> "LmdbStore":
        """Return the store, opened again as after a restart, once everything is written.

        :raises StorageError: if it cannot be written.
        """
        if self._durable < self._appended and not self._failure:
            self._waiting = Deferred()
            await self._waiting
        if self._failure:
            self._store.close()
            raise StorageError(f"the copy in {self._directory} cannot be written: {self._failure}")
        self._store.close()
        await next_turn(self._reactor)
        return self._open(on_compaction)

    def discard(self) -> None:
        """Close the store, which is not complete: the next copy is built in the same directory."""
        self._store.close()

    # Reports of the store

    def on_durable(self, watermark: Lsn) -> None:
        """Note how far it is written."""
        self._durable = watermark
        if watermark >= self._appended:
            self._end_waiting()

    def on_refused(self, reason: str) -> None:
        """Fail: the leader before could write it."""
        self.on_failed(reason)

    def on_set_aside(self, aside: SetAside) -> None:
        """Do nothing: the next start reports it."""

    def on_stalled(self, reason: str) -> None:
        """Fail: another node may have room on its disk."""
        self.on_failed(reason)

    def on_resumed(self) -> None:
        """Do nothing."""

    def on_failed(self, reason: str) -> None:
        """Fail."""
        self._failure = self._failure or reason
        self._end_waiting()

    def _end_waiting(self) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            waiting.callback(None)
