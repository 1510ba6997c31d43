"""A disk that outlives the processes that use it, in its simplest form: a store in memory that commits by events."""

from typing import Any, Final

from gateway.config import Settings
from gateway.kernel.journal.store import Store
from gateway.node.store import StoreFiles
from gateway.simulation.world.world import World
from gateway_memory import MemoryStore

#: The longest time that a commit takes, in seconds.
_LONGEST_COMMIT_S: Final = 0.01


class MemoryDisk:
    """Keeps what a ``MemoryStore`` committed. A kill loses what was not committed, as a power cut does."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._store: MemoryStore | None = None

    def open_store(self, settings: Settings, reactor: Any, files: StoreFiles) -> Store:
        """Open the store for a new process."""

        def defer(call: Any) -> None:
            reactor.callLater(self._world.random.uniform(0, _LONGEST_COMMIT_S), call)

        self._store = MemoryStore(defer) if self._store is None else self._store.reopened(defer)
        return self._store

    def fill(self) -> None:
        """Let no commit succeed any more, until ``drain``."""
        if self._store is not None:
            self._store.stall("no space left on device")

    def drain(self) -> None:
        """Let commits succeed again."""
        if self._store is not None:
            self._store.resume()
