"""A world with a virtual clock and a disk, and nothing else: enough to run a store."""

from __future__ import annotations

import heapq
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random

from gateway.simulation.disk import SimulatedDisk, SimulatedThreads
from gateway_lmdb import LmdbStore

DATA = Path("/node/data")

#: The most calls without a result before a test fails.
_MOST_CALLS = 5_000


class SmallWorld:
    """Calls in the order of virtual time; ``log`` has the operations of the disk."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.now_s = 0.0
        self.log: list[str] = []
        self.disk = SimulatedDisk(self.random, self.log.append)
        self.threads: SimulatedThreads | None = None
        self._calls: list[tuple[float, int, Callable[[], None]]] = []
        self._number = 0

    def schedule(self, delay_s: float, call: Callable[[], None]) -> None:
        self._number += 1
        heapq.heappush(self._calls, (self.now_s + delay_s, self._number, call))

    def step(self) -> bool:
        """Make the next call; return ``False`` without one."""
        if not self._calls:
            return False
        self.now_s, _, call = heapq.heappop(self._calls)
        call()
        return True

    def run_until(self, condition: Callable[[], bool]) -> None:
        for _ in range(_MOST_CALLS):
            if condition():
                return
            assert self.step(), "nothing is left to do, and the condition is false"
        raise AssertionError("the condition stays false")

    def run_for(self, delay_s: float) -> None:
        until_s = self.now_s + delay_s
        while self._calls and self._calls[0][0] <= until_s:
            self.step()
        self.now_s = until_s

    def new_threads(self) -> SimulatedThreads:
        return SimulatedThreads(self.schedule, lambda: self.now_s, self.random)

    def open(self, retry_interval_s: float = 0.5, killed_after: int | None = None) -> LmdbStore:
        """Open the store in a new process, which may be killed after a number of operations."""
        self.threads = self.new_threads()
        disk = self.disk.process(self.threads)
        if killed_after is not None:
            self.disk.kill_after(killed_after)
        return FiledStore(
            DATA,
            call_in_kernel=lambda call: self.schedule(0, call),
            retry_interval_s=retry_interval_s,
            disk=disk,
            threads=self.threads,
        )


class FiledStore(LmdbStore):
    """Copies files of segments from the simulated disk, for tests that read them."""

    copies: Path | None = None
    world_disk: SimulatedDisk | None = None

    def segment_path(self, stream_id: int, first: int) -> Path | None:
        path = super().segment_path(stream_id, first)
        if path is None or self.copies is None or self.world_disk is None:
            return path
        copy = self.copies / path.name
        copy.write_bytes(self.world_disk.content(path))
        return copy


class SimulatedPlace:
    """A store on a simulated disk, for the contract of stores. A crash is a loss of power."""

    def __init__(self, seed: int = 0) -> None:
        self.world = SmallWorld(seed)
        self.store: LmdbStore | None = None
        self._copies = Path(tempfile.mkdtemp(prefix="gateway-simulated-"))

    def open(self) -> LmdbStore:
        self.close_store()
        store = self.world.open()
        assert isinstance(store, FiledStore)
        store.copies, store.world_disk = self._copies, self.world.disk
        self.store = store
        return store

    def pump(self, until: Callable[[], bool]) -> None:
        self.world.run_until(until)

    def crash(self) -> None:
        self.world.disk.power_cut()
        self.store = None

    def close_store(self) -> None:
        if self.store is not None:
            self.store.close()
            self.store = None

    def close(self) -> None:
        self.close_store()
        self.world.disk.kill()
        shutil.rmtree(self._copies)
