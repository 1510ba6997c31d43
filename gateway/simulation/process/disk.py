"""The disk of a node, which outlives its processes: the LMDB store on it, with simulated threads."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from gateway.config import Settings
from gateway.kernel.journal.changes import Enqueued
from gateway.kernel.journal.store import Store
from gateway.node.store import StoreFiles
from gateway.simulation.disk import SimulatedDisk, SimulatedThreads
from gateway.simulation.world.world import World
from gateway_lmdb import LmdbStore


class NodeDisk(SimulatedDisk):
    """The disk of a node's LMDB store. A process that ends must end here too, by ``kill`` or ``power_cut``."""

    def __init__(self, world: World, log: Callable[[str], None] | None = None) -> None:
        super().__init__(world.random, log)
        self._world = world

    def open_store(self, settings: Settings, reactor: Any, files: StoreFiles) -> Store:
        """Open the store for a new process, after an operator repaired the disk."""
        self.repair()
        threads = SimulatedThreads(self._world.schedule, lambda: self._world.now_s, self._world.random)
        files.store = LmdbStore(
            settings.data,
            call_in_kernel=reactor.callFromThread,
            on_compaction=files.log_progress,
            disk=self.process(threads),
            threads=threads,
        )
        return files.store

    def orphans(self, directory: Path) -> list[int]:
        """Return the ids of the contents that no queue refers to, when no process runs."""
        self.repair()
        threads = SimulatedThreads(self._world.schedule, lambda: self._world.now_s, self._world.random)
        store = LmdbStore(directory, call_in_kernel=lambda call: None, disk=self.process(threads), threads=threads)
        referred = {change.message_id for change in store.recover() if isinstance(change, Enqueued)}
        _, newest = store.highest_ids()
        there = {number for number in range(1, newest + 1) if store.messages([number])[0] is not None}
        store.close()
        return sorted(there - referred)
