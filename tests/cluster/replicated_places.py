"""A place with a replicated store: the log in memory on a fake clock, the copy in memory or in a directory."""

import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from queue import Empty, SimpleQueue

from gateway.cluster.queue_log import UNCLAIMED, Claim, Epoch, QueueId
from gateway.cluster.replication.local_store import LocalStore
from gateway.cluster.replication.log_copy import LogCopy, Rebuilt
from gateway.cluster.replication.replicated_store import ReplicatedStore
from gateway.kernel.journal.store import Store
from gateway.testing.clock import FakeClock
from gateway.testing.cluster import MemoryClusterPlace
from gateway_lmdb import LmdbStore
from gateway_lmdb.unsynced import UnsyncedDisk
from gateway_memory import MemoryStore
from gateway_memory.cluster import MemoryQueueLogs

LOG = QueueId(1)

#: How much fake time may pass until a condition is true, in seconds.
_MOST_S = 10.0


class ReplicatedPlace:
    """A log that survives, and a copy that each start builds anew. An append is answered after ``latency_s``.

    The copy commits ``commit_s`` after an append.
    """

    def __init__(self, latency_s: float = 0, commit_s: float = 0.001) -> None:
        self.engine = MemoryClusterPlace()
        self.logs = MemoryQueueLogs(self.engine.clock, latency_s=latency_s)
        self._commit_s = commit_s
        self.epoch = Epoch(UNCLAIMED)
        self.store: ReplicatedStore | None = None

    def open(self) -> ReplicatedStore:
        """Claim the log, build a copy from it, and open the store on both."""
        claim = self.engine.run(self.logs.claim(LOG, "node", self.epoch))
        self.epoch = claim.epoch
        local, rebuilt = self._built(claim)
        self.store = ReplicatedStore(local, self.logs, self.engine.clock, claim, rebuilt.end, rebuilt.growth)
        return self.store

    def _built(self, claim: Claim) -> tuple[LocalStore, Rebuilt]:
        """Return a copy, opened again as after a restart, and what was read."""
        building = FakeClock()  # no time passes for the former owner
        built = MemoryStore(defer=lambda call: building.call_later(0, call))
        rebuilt = self._read(claim, built, building, lambda: building.advance(0))
        clock = self.engine.clock
        return built.reopened(defer=lambda call: clock.call_later(self._commit_s, call)), rebuilt

    def _read(self, claim: Claim, store: Store, clock: FakeClock, work: Callable[[], None]) -> Rebuilt:
        """Read the log into an empty store; ``work`` lets it work."""
        copy = LogCopy(LOG, store, clock, failed)
        end = self.engine.run(copy.read_rest(self.logs, claim))
        written: list[bool] = []
        copy.writer.finish(lambda: written.append(True))
        deadline = time.monotonic() + 20
        while not written:
            assert time.monotonic() < deadline, "the copy is not written after twenty seconds"
            work()
        return copy.rebuilt(end)

    def pump(self, until: Callable[[], bool]) -> None:
        """Let fake time pass."""
        passed_s = 0.0
        while not until():
            assert passed_s < _MOST_S, "nothing happened for ten seconds of fake time"
            self.engine.clock.advance(0.0005)
            passed_s += 0.0005

    def crash(self) -> None:
        """Forget the store; what is in flight may still reach the log."""
        self.store = None

    def close(self) -> None:
        """Forget everything."""
        self.store = None


class LmdbReplicatedPlace(ReplicatedPlace):
    """The same with copies in directories; their writer threads are waited for."""

    def __init__(self) -> None:
        super().__init__()
        self._directory = tempfile.TemporaryDirectory(prefix="gateway-copy-")
        self._calls: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._copies = count(1)

    def _built(self, claim: Claim) -> tuple[LocalStore, Rebuilt]:
        path = Path(self._directory.name) / str(next(self._copies))
        built = LmdbStore(path, call_in_kernel=self._calls.put, disk=UnsyncedDisk())
        clock = FakeClock()

        def work() -> None:
            clock.advance(0)
            with suppress(Empty):
                self._calls.get(timeout=0.001)()

        rebuilt = self._read(claim, built, clock, work)
        built.close()
        self._calls = SimpleQueue()
        opened = LmdbStore(
            path, call_in_kernel=self._calls.put, call_later=self.engine.clock.call_later, disk=UnsyncedDisk()
        )
        return opened, rebuilt

    def pump(self, until: Callable[[], bool]) -> None:
        """Let fake time pass, and the threads of the copies work."""
        deadline = time.monotonic() + 20
        while not until():
            assert time.monotonic() < deadline, "nothing happened for twenty seconds"
            self.engine.clock.advance(0.001)
            with suppress(Empty):
                self._calls.get(timeout=0.001)()

    def crash(self) -> None:
        """Forget the store, and end its thread."""
        if self.store is not None:
            self.store.local.close()
        super().crash()

    def close(self) -> None:
        """Remove the copies."""
        self.crash()
        self._directory.cleanup()


def failed(reason: str) -> None:
    """Fail."""
    raise AssertionError(reason)
